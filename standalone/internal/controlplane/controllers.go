package controlplane

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	pkgcontroller "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
)

const (
	garbageWorkers   = 10
	namespaceWorkers = 5
	roleWorkers      = 1
	accountWorkers   = 1
	quotaWorkers     = 2

	// quotaResync is how often all ResourceQuotas are recalculated, in memory: one that limits a kind that was not served
	// yet blocks all objects of it until then. replenishResync is a fallback; the controller watches deletions.
	quotaResync     = 15 * time.Second
	replenishResync = time.Hour

	// kindSync is how often the garbage and quota controllers look for new kinds (in memory, see watchedDiscovery).
	kindSync = time.Second
	// namespaceResync is a fallback; the controller watches all changes.
	namespaceResync = 5 * time.Minute
)

// controllers are the built-in controllers.
type controllers struct {
	typed     informers.SharedInformerFactory
	metadata  metadatainformer.SharedInformerFactory
	started   chan struct{}
	discovery *watchedDiscovery
	loops     []func(context.Context)
}

// newControllers sets up the controllers with clients of config.
func newControllers(ctx context.Context, config *rest.Config) (*controllers, error) {
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "built-in-controllers"))
	if err != nil {
		return nil, fmt.Errorf("create the built-in controllers' client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create the built-in controllers' metadata client: %w", err)
	}
	c := &controllers{
		typed:    informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim)),
		metadata: metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, 0, metadatainformer.WithTransform(trim)),
		started:  make(chan struct{}),
	}
	c.discovery, err = newWatchedDiscovery(client.Discovery(), c.metadata)
	if err != nil {
		return nil, err
	}
	if err := c.addGarbageCollector(ctx, client, metadataClient); err != nil {
		return nil, err
	}
	if err := c.addQuota(ctx, client); err != nil {
		return nil, err
	}
	return c, c.addSmall(ctx, client, metadataClient)
}

// addQuota adds the ResourceQuota controller, which limits how many Machines, Secrets or other objects a tenant may
// create.
func (c *controllers) addQuota(ctx context.Context, client kubernetes.Interface) error {
	for _, kind := range measured() {
		informer, err := c.typed.ForResource(kind)
		if err != nil {
			return fmt.Errorf("create the quota controller: %w", err)
		}
		informer.Informer() // It is started with the others.
	}
	evaluators, err := quotainstall.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(c.counted), c.typed)
	if err != nil {
		return fmt.Errorf("create the quota controller: %w", err)
	}
	kinds, err := newWatchedDiscovery(client.Discovery(), c.metadata)
	if err != nil {
		return err
	}
	quotas, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     c.typed.Core().V1().ResourceQuotas(),
		ResyncPeriod:              pkgcontroller.StaticResyncPeriodFunc(quotaResync),
		InformerFactory:           metadataOnly{c.metadata},
		ReplenishmentResyncPeriod: pkgcontroller.StaticResyncPeriodFunc(replenishResync),
		DiscoveryFunc:             kinds.namespaced,
		IgnoredResourcesFunc:      evaluators.IgnoredResources,
		InformersStarted:          c.started,
		Registry:                  generic.NewRegistry(evaluators.Evaluators()),
		UpdateFilter:              mayFreeQuota,
	})
	if err != nil {
		return fmt.Errorf("create the quota controller: %w", err)
	}
	c.loops = append(c.loops,
		func(ctx context.Context) { quotas.Run(ctx, quotaWorkers) },
		func(ctx context.Context) { quotas.Sync(ctx, kinds.namespaced, kindSync) },
	)
	return nil
}

// measured returns the kinds whose contents count for quotas, such as the node ports of Services. Of all others, objects are
// counted.
func measured() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		corev1.SchemeGroupVersion.WithResource("pods"),
		corev1.SchemeGroupVersion.WithResource("services"),
		corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
	}
}

// counted returns the informer that quotas of a kind are calculated with.
func (c *controllers) counted(kind schema.GroupVersionResource) (informers.GenericInformer, error) {
	if slices.Contains(measured(), kind) {
		return c.typed.ForResource(kind)
	}
	return c.metadata.ForResource(kind), nil
}

// mayFreeQuota reports whether an update may free quota, which is calculated again then. The events have metadata only, with
// which the filter of Kubernetes panics.
func mayFreeQuota(kind schema.GroupVersionResource, _, _ any) bool {
	return slices.Contains(measured(), kind)
}

// addGarbageCollector adds the garbage collector.
func (c *controllers) addGarbageCollector(ctx context.Context, client kubernetes.Interface, metadataClient metadata.Interface) error {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery()))
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, metadataClient, resettable{mapper},
		garbagecollector.DefaultIgnoredResources(), metadataOnly{c.metadata}, c.started)
	if err != nil {
		return fmt.Errorf("create the garbage collector: %w", err)
	}
	c.loops = append(c.loops,
		func(ctx context.Context) { collector.Run(ctx, garbageWorkers, kindSync) },
		func(ctx context.Context) { collector.Sync(ctx, c.discovery, kindSync) },
	)
	return nil
}

// addSmall adds namespace deletion, aggregated ClusterRoles and default ServiceAccounts.
func (c *controllers) addSmall(ctx context.Context, client kubernetes.Interface, metadataClient metadata.Interface) error {
	namespaces := namespace.NewNamespaceController(ctx, client, metadataClient,
		client.Discovery().ServerPreferredNamespacedResources, c.typed.Core().V1().Namespaces(), namespaceResync, corev1.FinalizerKubernetes)
	roles := clusterroleaggregation.NewClusterRoleAggregation(c.typed.Rbac().V1().ClusterRoles(), client.RbacV1())
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), c.typed.Core().V1().ServiceAccounts(),
		c.typed.Core().V1().Namespaces(), client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return fmt.Errorf("create the ServiceAccount controller: %w", err)
	}
	c.loops = append(c.loops,
		func(ctx context.Context) { namespaces.Run(ctx, namespaceWorkers) },
		func(ctx context.Context) { roles.Run(ctx, roleWorkers) },
		func(ctx context.Context) { accounts.Run(ctx, accountWorkers) },
	)
	return nil
}

// run runs the controllers until the context ends, and returns when they have stopped.
func (c *controllers) run(ctx context.Context) {
	c.typed.Start(ctx.Done())
	c.metadata.Start(ctx.Done())
	close(c.started)
	var running sync.WaitGroup
	for _, loop := range c.loops {
		running.Go(func() { loop(ctx) })
	}
	running.Wait()
	c.typed.Shutdown()
	c.metadata.Shutdown()
}

// metadataOnly provides the garbage collector with metadata informers for all kinds, even those with typed clients.
type metadataOnly struct {
	metadatainformer.SharedInformerFactory
}

// ForResource implements informerfactory.InformerFactory.
func (m metadataOnly) ForResource(r schema.GroupVersionResource) (informers.GenericInformer, error) {
	return m.SharedInformerFactory.ForResource(r), nil
}

// resettable is a RESTMapper that discovers new kinds on Reset.
type resettable struct {
	*restmapper.DeferredDiscoveryRESTMapper
}

var _ meta.ResettableRESTMapper = resettable{}

// trim drops fields that no built-in controller reads before an object is cached.
func trim(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil // tombstones have no metadata and are passed on
	}
	accessor.SetManagedFields(nil)
	if _, ok := object.(*metav1.PartialObjectMetadata); ok {
		accessor.SetAnnotations(nil)
		accessor.SetLabels(nil)
	}
	return object, nil
}
