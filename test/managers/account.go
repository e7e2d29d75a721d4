package managers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// tokenLifetime is longer than any run: tokens are not renewed.
const tokenLifetime = 7 * 24 * time.Hour

// Connection is how a manager connects to the API server.
type Connection struct {
	// Config has the credentials.
	Config *rest.Config
	// Kubeconfig is the path of a file with the same credentials.
	Kubeconfig string
	// Namespace is the value of POD_NAMESPACE: the namespace of the manager's Lease and Secret. Empty: the variable is not
	// set, which works for an administrator without leader election.
	Namespace string
	// User is the manager's user name. Empty: an administrator.
	User string
}

// Connection returns how a program's manager connects: as an administrator, or with Options.Accounts as the component's
// own ServiceAccount, which is created with its RBAC.
func (s *Server) Connection(ctx context.Context, p Program) (Connection, error) {
	if !s.Accounts {
		return Connection{Config: s.Config, Kubeconfig: s.Kubeconfig}, nil
	}
	objects, err := s.Released(ctx, p)
	if err != nil {
		return Connection{}, err
	}
	c, err := s.Account(ctx, objects)
	if err != nil {
		return Connection{}, fmt.Errorf("the manifests of %s: %w", p.Component, err)
	}
	return c, nil
}

// Account returns a connection as the ServiceAccount that is among the objects of a manager. It creates it, its Namespace, roles and
// bindings.
func (s *Server) Account(ctx context.Context, objects []*unstructured.Unstructured) (Connection, error) {
	for _, o := range objects {
		switch o.GetKind() {
		case "Namespace", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
			if err := s.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
				return Connection{}, fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceAccount" })
	if i < 0 {
		return Connection{}, errors.New("there is no ServiceAccount")
	}
	return s.account(ctx, objects[i].GetNamespace(), objects[i].GetName())
}

// account returns a connection as a ServiceAccount, when its permissions are effective.
func (s *Server) account(ctx context.Context, namespace, name string) (Connection, error) {
	admin, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return Connection{}, err
	}
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds()))},
	}, metav1.CreateOptions{})
	if err != nil {
		return Connection{}, fmt.Errorf("getting a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	c := Connection{
		Config:     rest.AnonymousClientConfig(s.Config),
		Kubeconfig: filepath.Join(s.Dir, namespace+".kubeconfig"),
		Namespace:  namespace,
		User:       "system:serviceaccount:" + namespace + ":" + name,
	}
	c.Config.BearerToken = token.Status.Token
	c.Config.QPS = -1
	if err := c.write(); err != nil {
		return Connection{}, err
	}
	if err := awaitGranted(ctx, admin, c, name); err != nil {
		return Connection{}, fmt.Errorf("waiting for the permissions of %s: %w", c.User, err)
	}
	return c, nil
}

// write writes the kubeconfig file.
func (c Connection) write() error {
	const entry = "manager"
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{entry: {Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{entry: {Token: c.Config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{entry: {Cluster: entry, AuthInfo: entry}},
		CurrentContext: entry,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(c.Kubeconfig, raw, 0o600)
}

// awaitGranted waits until the API server's cache of roles is up to date: otherwise, requests of the manager are forbidden,
// and it exits.
func awaitGranted(ctx context.Context, admin kubernetes.Interface, c Connection, name string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		grants, err := Grants(ctx, admin, c.Namespace, name)
		if err != nil {
			last = err
			return false, nil
		}
		for _, g := range grants {
			review, err := admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, g.review(c.User), metav1.CreateOptions{})
			if err != nil || !review.Status.Allowed {
				last = errors.Join(err, fmt.Errorf("not permitted yet: %s", g))
				return false, nil
			}
		}
		return len(grants) > 0, nil
	})
	if err == nil {
		return nil // last is the error of an earlier attempt.
	}
	return errors.Join(err, last)
}
