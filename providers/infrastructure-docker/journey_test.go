package docker

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// account is the user that the manager runs as.
const account = "capd-manager"

// forbidden records requests that the API server denies.
type forbidden struct {
	next http.RoundTripper
	lock sync.Mutex
	all  []string
}

// RoundTrip implements http.RoundTripper.
func (f *forbidden) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := f.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusForbidden {
		f.lock.Lock()
		f.all = append(f.all, r.Method+" "+r.URL.Path)
		f.lock.Unlock()
	}
	return response, err
}

// grant gives the manager the permissions of a release.
func grant(t *testing.T, e *testenv.Env, c client.Client) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(e.Root, "providers", "infrastructure-docker", "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		t.Fatal(err)
	}
	role.Name = account
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account}},
	}
	// The manager's own namespace, as in release/files/manager.yaml.tmpl.
	own := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: account}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"capd-webhook-service-cert"}, Verbs: []string{"list", "update", "watch"}},
	}}
	ownBinding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}, Subjects: binding.Subjects,
	}
	for _, o := range []client.Object{role, binding, own, ownBinding} {
		if err := c.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) { // The tests share a server.
			t.Fatal(err)
		}
	}
}

// run runs the manager with its own permissions until the test ends.
func run(t *testing.T, config *rest.Config, e engine.Engine) {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: account}
	denied := &forbidden{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { denied.next = next; return denied })
	sockets := t.TempDir()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	args := []string{"--webhook-cert-dir", testenv.ServingCertificate(t)}
	go func() {
		c := component(func(manager.Environment) (engine.Engine, error) { return e, nil })
		ended <- manager.Run(ctx, c, args, manager.Host{
			Config: config, Namespace: "default", Logger: logr.Discard(), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
			Getenv: func(string) string { return "" },
			Listen: func(purpose string) (net.Listener, error) { return net.Listen("unix", filepath.Join(sockets, purpose)) },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		denied.lock.Lock()
		defer denied.lock.Unlock()
		if len(denied.all) > 0 {
			t.Errorf("forbidden requests: %v", denied.all)
		}
	})
}

func fetch[T client.Object](ctx context.Context, c client.Client, key client.ObjectKey, obj T) (T, error) {
	return obj, c.Get(ctx, key, obj)
}

// TestCluster runs the manager over a real API server, with the permissions of a release, and a container runtime in memory.
func TestCluster(t *testing.T) {
	e := server.Start(t, "providers/core/config/crd/*.yaml", "providers/infrastructure-docker/config/crd/*.yaml")
	scheme := testenv.Scheme(t, dockerv1.AddToScheme)
	c, namespace := e.NewClient(t, scheme), e.Namespace(t)
	grant(t, e, c)
	containers := enginetest.New()
	run(t, e.Config, containers)

	key := client.ObjectKey{Namespace: namespace, Name: "demo"}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo"}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: dockerv1.GroupVersion.Group, Kind: "DockerCluster", Name: "demo"},
	}}
	template := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "haproxy"}, Data: map[string]string{"value": "{{$BackendServers}}"}}
	create(t, c, cluster, template)
	infra := &dockerv1.DockerCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "demo", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "demo", UID: cluster.UID}},
	}}
	infra.Spec.LoadBalancer.CustomHAProxyConfigTemplateRef = &corev1.LocalObjectReference{Name: "haproxy"}
	create(t, c, infra)
	testenv.Eventually(t, "the cluster to be ready", func() error {
		got, err := fetch(t.Context(), c, key, &dockerv1.DockerCluster{})
		if err == nil && !ptr.Deref(got.Status.Initialization.Provisioned, false) {
			err = fmt.Errorf("its status is %+v", got.Status)
		}
		return err
	})

	machine := &dockerv1.DockerMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "demo", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo", clusterv1.MachineControlPlaneLabel: ""},
	}}
	create(t, c, machine)
	machine.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "172.18.0.9"}}
	if err := c.Status().Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the machine to be registered", func() error {
		got, err := fetch(t.Context(), c, key, &dockerv1.DockerMachine{})
		if err == nil && !got.Status.LoadBalancerConfigured {
			err = fmt.Errorf("its status is %+v", got.Status)
		}
		return err
	})

	name := identity.LoadBalancerContainer("demo")
	containers.Kill(name, 137)
	testenv.Eventually(t, "the load balancer to be started again", func() error {
		state, err := containers.Inspect(t.Context(), name)
		if err == nil && !state.Running {
			err = fmt.Errorf("its state is %+v", state)
		}
		return err
	})

	if err := c.Delete(t.Context(), infra); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the cluster to be gone", func() error {
		if _, err := fetch(t.Context(), c, key, &dockerv1.DockerCluster{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it exists, error %w", err)
		}
		return nil
	})
	if left := slices.Concat(containers.Containers(), containers.Networks()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
