// Package management connects to a management cluster and checks that clusterctl can work with it.
package management

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

const (
	qps     = 20
	burst   = 100
	timeout = 30 * time.Second

	clusterCRD = "clusters.cluster.x-k8s.io"
)

// Minimum Kubernetes versions of management clusters.
const (
	MinKubernetes         = "v1.20.0"
	MinKubernetesTopology = "v1.22.0"
)

// ErrNotInitialized is matched by errors if no core provider is installed.
var ErrNotInitialized = errors.New("not a management cluster")

// Cluster is a connection to a management cluster.
type Cluster struct {
	// Client reads and writes without a cache.
	Client client.WithWatch
	// Namespace is the namespace of the kubeconfig's context.
	Namespace string
	// Host is the API server's URL.
	Host string
	// Versions returns the API server's version.
	Versions discovery.ServerVersionInterface
	// Config is what Client connects with.
	Config *rest.Config
	// Resources lists the API server's kinds.
	Resources discovery.ServerResourcesInterface

	// inPod is set if the connection is that of the Pod in which clusterctl runs, because there is no kubeconfig.
	inPod bool
}

// Scheme returns the types known to the Client of a Cluster; all others work as unstructured objects.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), clusterctlv1.AddToScheme(scheme), clusterv1beta1.AddToScheme(scheme),
		controlplanev1beta1.AddToScheme(scheme), fleetv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return scheme, nil
}

// Connect prepares a connection; it makes no request yet.
func Connect(k Kubeconfig, userAgent string) (*Cluster, error) {
	config, inPod, err := k.rest()
	if err != nil {
		return nil, err
	}
	namespace, err := k.Namespace()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst, config.Timeout, config.UserAgent = qps, burst, timeout, userAgent
	host := config.Host
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return explaining{RoundTripper: next, host: host} })
	cluster, err := New(config, namespace)
	if err == nil {
		cluster.inPod = inPod
	}
	return cluster, err
}

// New prepares a connection with a configuration that is not changed later. namespace is that of the kubeconfig's context.
func New(config *rest.Config, namespace string) (*Cluster, error) {
	// clusterctl's users cannot act on deprecation warnings about providers' kinds.
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	return connect(config, namespace)
}

func connect(config *rest.Config, namespace string) (*Cluster, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	versions, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", config.Host, err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", config.Host, err)
	}
	return &Cluster{Client: stored{c}, Namespace: namespace, Host: config.Host, Versions: versions, Resources: versions, Config: config}, nil
}

// Key returns the key of an object; without a namespace, that of the kubeconfig's context.
func (c *Cluster) Key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(namespace, c.Namespace), Name: name}
}

// Unlimited returns a connection without a client-side rate limit, for commands that make thousands of requests and limit
// how many are in flight: API priority and fairness of the API server sets their pace.
func (c *Cluster) Unlimited() (*Cluster, error) {
	return c.with(func(config *rest.Config) { config.QPS, config.RateLimiter = -1, nil })
}

// Warning returns a connection with which the warnings of the API server and its webhooks are passed to a handler, which is called
// concurrently. Others drop them.
func (c *Cluster) Warning(handler rest.WarningHandler) (*Cluster, error) {
	return c.with(func(config *rest.Config) { config.WarningHandler = handler })
}

// with returns a connection that differs by a change of its configuration.
func (c *Cluster) with(change func(*rest.Config)) (*Cluster, error) {
	config := rest.CopyConfig(c.Config)
	change(config)
	changed, err := connect(config, c.Namespace)
	if err == nil {
		changed.inPod = c.inPod
	}
	return changed, err
}

// ReadBackoff is the backoff of the first request; it gives up after about twenty seconds.
func ReadBackoff() wait.Backoff {
	return wait.Backoff{Duration: 250 * time.Millisecond, Factor: 1.5, Steps: 9, Jitter: 0.1}
}

// CheckKubernetes waits until the API server responds, and rejects versions of Kubernetes older than minimum. waiting,
// which may be nil, is called once with the first error.
func (c *Cluster) CheckKubernetes(ctx context.Context, minimum string, backoff wait.Backoff, waiting func(error)) error {
	var info *version.Info
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		first := last == nil
		if info, last = c.Versions.ServerVersion(); last == nil {
			return true, nil
		}
		var connection *ConnectionError
		if apierrors.IsUnauthorized(last) || apierrors.IsForbidden(last) || errors.As(last, &connection) && connection.Permanent() {
			return false, last
		}
		if first && waiting != nil {
			waiting(last)
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return c.explained("cannot get the version of the management cluster at %s: %w", last)
	}
	found, err := semver.ParseTolerant(info.GitVersion)
	if err != nil {
		return fmt.Errorf("the management cluster at %s has an invalid Kubernetes version %q: %w", c.Host, info.GitVersion, err)
	}
	if wanted, err := semver.ParseTolerant(minimum); err != nil || found.LT(wanted) {
		return fmt.Errorf("the management cluster at %s runs Kubernetes %s, but at least %s is required", c.Host, info.GitVersion, minimum)
	}
	return nil
}

// CheckInstallable checks that the cluster is a management cluster of this project's contract, or can become one; see
// CheckKubernetes.
func (c *Cluster) CheckInstallable(ctx context.Context, minimum string, waiting func(error)) error {
	if err := c.CheckKubernetes(ctx, minimum, ReadBackoff(), waiting); err != nil {
		return err
	}
	if err := c.CheckContract(ctx); !errors.Is(err, ErrNotInitialized) {
		return err
	}
	return nil
}

// CheckContract checks that the cluster serves objects in the version that clusterctl reads and writes. The error matches
// ErrNotInitialized if no core provider is installed.
func (c *Cluster) CheckContract(ctx context.Context) error {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	err := c.Client.Get(ctx, client.ObjectKey{Name: clusterCRD}, crd)
	if apierrors.IsForbidden(err) {
		// Such as a user whose roles are for one namespace.
		if served := c.discovered(); len(served) > 0 {
			return c.checkVersions(served)
		}
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: the cluster at %s has no CustomResourceDefinition %s: run `clusterctl init` first",
			ErrNotInitialized, c.Host, clusterCRD)
	}
	if c.inPod && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		// For example a Pod of a CI system, which has nothing to do with management clusters.
		return fmt.Errorf("%w, and the ServiceAccount of this Pod has no access to the cluster at %s: %w", ErrNoKubeconfig, c.Host, err)
	}
	if err != nil {
		return c.explained("cannot check the management cluster at %s: %w", err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var served []string
	for _, item := range versions {
		v, ok := item.(map[string]any)
		if name, _ := v["name"].(string); ok && v["served"] == true {
			served = append(served, name)
		}
	}
	return c.checkVersions(served)
}

// discovered returns the versions in which the cluster serves Clusters, as all users may discover them.
func (c *Cluster) discovered() []string {
	mappings, err := c.Client.RESTMapper().RESTMappings(clusterv1beta1.GroupVersion.WithKind("Cluster").GroupKind())
	if err != nil {
		return nil
	}
	var served []string
	for _, m := range mappings {
		served = append(served, m.GroupVersionKind.Version)
	}
	return served
}

// checkVersions checks the versions in which Clusters are served.
func (c *Cluster) checkVersions(served []string) error {
	if !slices.Contains(served, clusterv1beta1.GroupVersion.Version) {
		return fmt.Errorf("the management cluster at %s serves Clusters in versions %q, but this clusterctl requires %s: "+
			"use a clusterctl for these versions", c.Host, served, clusterv1beta1.GroupVersion.Version)
	}
	return nil
}

// OrNotInitialized returns the error of a request for a kind of this project, or, if the cluster does not have the kind, why: no core
// provider is installed, or one of another contract.
func (c *Cluster) OrNotInitialized(ctx context.Context, err error) error {
	if meta.IsNoMatchError(err) {
		if contractErr := c.CheckContract(ctx); contractErr != nil {
			return contractErr
		}
	}
	return err
}

// explained wraps an error with a format for host and error, unless the error already names the host.
func (c *Cluster) explained(phrase string, err error) error {
	if connection, ok := errors.AsType[*ConnectionError](err); ok {
		return connection
	}
	return fmt.Errorf(phrase, c.Host, err)
}

// NoCluster is the error for a workload cluster that does not exist.
func NoCluster(name client.ObjectKey) error {
	return fmt.Errorf("cluster %s not found: see `kubectl get clusters -A`, and set its namespace with --namespace", name)
}

// NoFleet is the error for a management cluster without the kinds of the fleet provider.
func NoFleet() error {
	return errors.New("the management cluster makes no backups: install the fleet provider with `clusterctl init --addon fleet`")
}
