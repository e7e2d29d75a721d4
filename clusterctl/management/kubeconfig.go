package management

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrNoKubeconfig is matched by errors if there is no kubeconfig, as opposed to an invalid one.
var ErrNoKubeconfig = errors.New("no kubeconfig")

// Kubeconfig selects a cluster.
type Kubeconfig struct {
	// Path is a file; empty means kubectl's default.
	Path string
	// Context is one of the file's contexts; empty means its current one.
	Context string

	// account is the folder of the Pod's ServiceAccount; empty means the usual one.
	account string
}

// usualAccount is where the kubelet mounts the token of a Pod's ServiceAccount.
const usualAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// pod returns the connection of a Pod to its own cluster, as kubectl uses it if there is no kubeconfig, with the Pod's namespace; nil
// outside of Pods, and if a file or context is selected.
func (k Kubeconfig) pod() (*rest.Config, string) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if k.Path != "" || k.Context != "" || host == "" || port == "" {
		return nil, ""
	}
	folder := cmp.Or(k.account, usualAccount)
	token, err := os.ReadFile(filepath.Join(folder, "token"))
	if err != nil {
		return nil, ""
	}
	config := &rest.Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		BearerToken:     string(token),
		BearerTokenFile: filepath.Join(folder, "token"),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(folder, "ca.crt")},
	}
	namespace, _ := os.ReadFile(filepath.Join(folder, "namespace")) // Without it, the default.
	return config, cmp.Or(strings.TrimSpace(string(namespace)), metav1.NamespaceDefault)
}

// Contexts returns the names of the contexts, sorted.
func (k Kubeconfig) Contexts() ([]string, error) {
	raw, err := k.raw()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), nil
}

// Namespace returns the context's namespace, "default" if it has none. Without a kubeconfig, it is that of the Pod in which clusterctl
// runs.
func (k Kubeconfig) Namespace() (string, error) {
	raw, err := k.raw()
	if errors.Is(err, ErrNoKubeconfig) {
		if config, namespace := k.pod(); config != nil {
			return namespace, nil
		}
	}
	if err != nil {
		return "", err
	}
	if c := raw.Contexts[raw.CurrentContext]; c != nil && c.Namespace != "" {
		return c.Namespace, nil
	}
	return "default", nil
}

// raw reads the kubeconfig, selects the context, and checks what can be checked without a connection.
func (k Kubeconfig) raw() (clientcmdapi.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	where := "the kubeconfig " + strings.Join(rules.GetLoadingPrecedence(), ", ")
	loaded, err := rules.Load()
	if err != nil {
		return clientcmdapi.Config{}, fmt.Errorf("cannot read %s: %w: correct it, or choose another one with --kubeconfig", where, err)
	}
	if k.Context != "" {
		loaded.CurrentContext = k.Context
	}
	names := slices.Sorted(maps.Keys(loaded.Contexts))
	switch {
	case len(names) == 0:
		return *loaded, fmt.Errorf("%w: %s is missing or empty: choose one with --kubeconfig or the environment variable KUBECONFIG",
			ErrNoKubeconfig, where)
	case loaded.CurrentContext == "":
		return *loaded, fmt.Errorf("%s has no current context: choose one of %s with --kubeconfig-context", where, strings.Join(names, ", "))
	case loaded.Contexts[loaded.CurrentContext] == nil:
		return *loaded, fmt.Errorf("%s has no context %q: choose one of %s with --kubeconfig-context",
			where, loaded.CurrentContext, strings.Join(names, ", "))
	}
	if err := clientcmd.ConfirmUsable(*loaded, loaded.CurrentContext); err != nil {
		return *loaded, fmt.Errorf("invalid context %q of %s: %w", loaded.CurrentContext, where, err)
	}
	return *loaded, nil
}

// rest returns the configuration of the connection. inPod reports whether it is that of the Pod in which clusterctl runs.
func (k Kubeconfig) rest() (config *rest.Config, inPod bool, err error) {
	raw, err := k.raw()
	if errors.Is(err, ErrNoKubeconfig) {
		if config, _ = k.pod(); config != nil {
			return config, true, nil
		}
	}
	if err != nil {
		return nil, false, err
	}
	config, err = clientcmd.NewDefaultClientConfig(raw, nil).ClientConfig()
	if err != nil {
		return nil, false, fmt.Errorf("invalid context %q of the kubeconfig: %w", raw.CurrentContext, err)
	}
	return config, false, nil
}
