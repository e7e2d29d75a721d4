package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	kubernetes "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/cluster-api/sdk/feature"
	"sigs.k8s.io/cluster-api/sdk/version"
)

const (
	// lowestKubernetes is the lowest supported version of management clusters.
	lowestKubernetes = "v1.20.0"
	// lowestKubernetesForTopology is the same with ClusterTopology, which requires stable server-side apply.
	lowestKubernetesForTopology = "v1.22.0"

	// podNamespaceFile is a file in every pod with its namespace.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// connection returns the configuration of the API server, with the component's rate limits and user agent.
func connection(c Component, o *options, h Host) (*rest.Config, error) {
	config, err := identity(o, h)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = version.Get().UserAgent(c.Name)
	if config.QPS == 0 || o.given("kube-api-qps") {
		config.QPS = o.qps
	}
	if config.Burst == 0 || o.given("kube-api-burst") {
		config.Burst = o.burst
	}
	// API servers repeat warnings with every request.
	config.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	return config, nil
}

func identity(o *options, h Host) (*rest.Config, error) {
	if h.Config != nil {
		return h.Config, nil
	}
	if o.kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("reading --kubeconfig %s: %w", o.kubeconfig, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("no API server to connect to: this process does not run in a pod, so --kubeconfig is required")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pod's service account: %w", err)
	}
	return config, nil
}

// detectNamespace returns the namespace of the component's own objects. It is not found if the process does not run in a pod and
// neither Host nor POD_NAMESPACE set it.
func detectNamespace(h Host, file string) (namespace string, found bool, err error) {
	if h.Namespace != "" {
		return h.Namespace, true, nil
	}
	if ns := h.Getenv("POD_NAMESPACE"); ns != "" {
		return ns, true, nil
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("reading the pod's namespace (set POD_NAMESPACE to avoid it): %w", err)
	}
	ns := strings.TrimSpace(string(content))
	return ns, ns != "", nil
}

// kubernetesVersion returns the version of the API server.
func kubernetesVersion(ctx context.Context, config *rest.Config) (*utilversion.Version, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	body, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("requesting the version of the API server at %s: %w", config.Host, err)
	}
	var info kubernetes.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return nil, fmt.Errorf("reading the version of the API server at %s: %w", config.Host, err)
	}
	parsed, err := utilversion.ParseGeneric(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the version of the API server at %s: %w", config.Host, err)
	}
	return parsed, nil
}

// checkKubernetesVersion returns an error for management clusters that are too old.
func checkKubernetesVersion(v *utilversion.Version, gates *feature.Gates) error {
	if !v.AtLeast(utilversion.MustParseGeneric(lowestKubernetes)) {
		return fmt.Errorf("the management cluster runs Kubernetes v%s: upgrade it to %s or later", v, lowestKubernetes)
	}
	topology := gates.Uses(feature.ClusterTopology) && gates.Enabled(feature.ClusterTopology)
	if topology && !v.AtLeast(utilversion.MustParseGeneric(lowestKubernetesForTopology)) {
		return fmt.Errorf("the management cluster runs Kubernetes v%s: upgrade it to %s or later, or turn feature gate %s off",
			v, lowestKubernetesForTopology, feature.ClusterTopology)
	}
	return nil
}
