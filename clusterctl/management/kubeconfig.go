package management

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
}

// Contexts returns the names of the contexts, sorted.
func (k Kubeconfig) Contexts() ([]string, error) {
	raw, err := k.raw()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), nil
}

// Namespace returns the context's namespace, "default" if it has none.
func (k Kubeconfig) Namespace() (string, error) {
	raw, err := k.raw()
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

func (k Kubeconfig) rest() (*rest.Config, error) {
	raw, err := k.raw()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("invalid context %q of the kubeconfig: %w", raw.CurrentContext, err)
	}
	return config, nil
}
