package manager

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/manager/internal/objectcache"
)

// shutdownTimeout is how long shutdown may take. Pods have 10s: the rest is for releasing the
// lease, so that the next leader does not have to wait until it expires.
const shutdownTimeout = 8 * time.Second

// build builds the controller-runtime manager. It does not serve health, metrics and profiles, because it can only do that
// on TCP ports.
func (r *run) build(webhooks webhook.Server) (ctrl.Manager, error) {
	scheme, err := r.scheme()
	if err != nil {
		return nil, err
	}
	cacheOptions, err := r.cacheOptions()
	if err != nil {
		return nil, err
	}
	election, err := r.elect()
	if err != nil {
		return nil, err
	}
	o := r.options
	managed := ctrl.Options{
		Scheme:   scheme,
		Logger:   r.log,
		Cache:    cacheOptions,
		NewCache: newCache,
		Client: client.Options{Cache: &client.CacheOptions{
			Unstructured: true,
			DisableFor:   []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		}},
		NewClient:                           newClient,
		LeaderElection:                      election.lock != nil,
		LeaderElectionID:                    r.component.LeaderElectionID,
		LeaderElectionResourceLockInterface: election.lock,
		LeaderElectionReleaseOnCancel:       election.lease != nil, // a host knows when the component has ended
		LeaseDuration:                       &o.leaderElection.Lease,
		RenewDeadline:                       &o.leaderElection.RenewDeadline,
		RetryPeriod:                         &o.leaderElection.RetryPeriod,
		Metrics:                             metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:              "0",
		WebhookServer:                       webhooks,
		GracefulShutdownTimeout:             ptr.To(shutdownTimeout),
		Controller:                          config.Controller{SkipNameValidation: ptr.To(r.host.shared())},
	}
	r.convert(&managed)
	mgr, err := ctrl.NewManager(election.config, managed)
	if err != nil {
		return nil, fmt.Errorf("preparing the manager: %w", err)
	}
	election.record(mgr)
	if r.boundary != nil {
		if webhooks != nil {
			webhooks.Register(conversionPath, r.component.Conversions.Webhook())
		}
		return convertingManager{Manager: mgr, reader: r.boundary.Reader(mgr.GetAPIReader())}, nil
	}
	return mgr, nil
}

// newCache returns a manager's cache. A provider whose objects cannot be read does not block others, and lists of what belongs to a
// Cluster, MachineDeployment or MachineSet do not visit what belongs to others.
func newCache(config *rest.Config, o cache.Options) (cache.Cache, error) {
	c, err := objectcache.New(config, o)
	if err != nil {
		return nil, err
	}
	labels := []string{clusterv1.MachineSetNameLabel, clusterv1.MachineDeploymentNameLabel, clusterv1.ClusterNameLabel}
	return objectcache.Indexed(c, o.Scheme, labels...), nil
}

// newCache returns a cache of the manager's kinds with conversions.
func (r *run) newCache(mgr ctrl.Manager, o cache.Options) (cache.Cache, error) {
	o.Scheme, o.Mapper, o.HTTPClient, o.SyncPeriod = mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetHTTPClient(), &r.options.syncPeriod
	if r.boundary != nil {
		o = r.boundary.Cache(mgr.GetConfig(), o)
	}
	return objectcache.New(mgr.GetConfig(), o)
}

// scheme returns the kinds of the component, with all versions that are converted.
func (r *run) scheme() (*runtime.Scheme, error) {
	if r.component.AddConverted == nil {
		return schemeOf(r.component.AddToScheme...)
	}
	return schemeOf(append(slices.Clip(r.component.AddToScheme), r.component.AddConverted)...)
}

func schemeOf(adders ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{corev1.AddToScheme}, adders...) {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	return scheme, nil
}

func (r *run) cacheOptions() (cache.Options, error) {
	selector, err := secretsOfClusters()
	if err != nil {
		return cache.Options{}, fmt.Errorf("selecting Secrets to cache: %w", err)
	}
	o := cache.Options{
		SyncPeriod: &r.options.syncPeriod,
		ByObject:   map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: selector, Transform: lean}},
	}
	if ns := r.options.watchNamespace; ns != "" {
		o.DefaultNamespaces = map[string]cache.Config{ns: {}}
	}
	if r.component.Cache != nil {
		r.component.Cache(&o)
	}
	return o, nil
}
