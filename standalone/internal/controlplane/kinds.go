package controlplane

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	pkgcontroller "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
)

// kinds are the controllers that watch the objects of all kinds: the garbage collector and ResourceQuotas.
//
// They end when the API server stops serving a version that they have watched, although it still serves the kind in another one, as when
// older definitions are installed again, and new ones take their place. The garbage collector addresses an object in the version in which
// it first saw it, for ever: of such ones, none would be deleted with their owners any longer. (In other clusters, this needs a restart
// of kube-controller-manager.)
type kinds struct {
	*controllers

	objects   metadatainformer.SharedInformerFactory
	discovery *watchedDiscovery
	started   chan struct{}
	loops     []func(context.Context)
}

// runKinds runs the controllers of kinds until the context ends.
func (c *controllers) runKinds(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if c.kinds == nil {
			next, err := c.newKinds(ctx)
			if err != nil {
				klog.FromContext(ctx).Error(err, "Garbage collection and quotas are paused, and tried again")
				return
			}
			c.kinds = next
		}
		c.kinds.run(ctx)
		c.kinds = nil
	}, kindSync)
}

func (c *controllers) newKinds(ctx context.Context) (*kinds, error) {
	k := &kinds{
		controllers: c,
		objects:     metadatainformer.NewSharedInformerFactoryWithOptions(c.metadata, 0, metadatainformer.WithTransform(trim)),
		started:     make(chan struct{}),
	}
	var err error
	if k.discovery, err = newWatchedDiscovery(c.client.Discovery(), k.objects); err != nil {
		return nil, err
	}
	if err := k.addGarbageCollector(ctx); err != nil {
		return nil, err
	}
	return k, k.addQuota(ctx)
}

// run runs the controllers until the context ends, or a version that they watch is no longer served.
func (k *kinds) run(ctx context.Context) {
	k.typed.Start(ctx.Done()) // What is new in it.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	k.objects.Start(ctx.Done())
	close(k.started)
	var running sync.WaitGroup
	for _, loop := range k.loops {
		running.Go(func() { loop(ctx) })
	}
	select {
	case <-ctx.Done():
	case <-k.discovery.lost:
	}
	stop()
	running.Wait()
	k.objects.Shutdown()
}

// addGarbageCollector adds the garbage collector.
func (k *kinds) addGarbageCollector(ctx context.Context) error {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(k.client.Discovery()))
	collector, err := garbagecollector.NewGarbageCollector(ctx, k.client, k.metadata, resettable{mapper},
		garbagecollector.DefaultIgnoredResources(), metadataOnly{k.objects}, k.started)
	if err != nil {
		return fmt.Errorf("create the garbage collector: %w", err)
	}
	k.loops = append(k.loops,
		func(ctx context.Context) { collector.Run(ctx, garbageWorkers, kindSync) },
		func(ctx context.Context) { collector.Sync(ctx, k.discovery, kindSync) },
	)
	return nil
}

// addQuota adds the ResourceQuota controller, which limits how many Machines, Secrets or other objects a tenant may
// create.
func (k *kinds) addQuota(ctx context.Context) error {
	for _, kind := range measured() {
		informer, err := k.typed.ForResource(kind)
		if err != nil {
			return fmt.Errorf("create the quota controller: %w", err)
		}
		informer.Informer() // It is started with the others.
	}
	evaluators, err := quotainstall.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(k.counted), k.typed)
	if err != nil {
		return fmt.Errorf("create the quota controller: %w", err)
	}
	namespaced, err := newWatchedDiscovery(k.client.Discovery(), k.objects)
	if err != nil {
		return err
	}
	quotas, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               k.client.CoreV1(),
		ResourceQuotaInformer:     k.typed.Core().V1().ResourceQuotas(),
		ResyncPeriod:              pkgcontroller.StaticResyncPeriodFunc(quotaResync),
		InformerFactory:           metadataOnly{k.objects},
		ReplenishmentResyncPeriod: pkgcontroller.StaticResyncPeriodFunc(replenishResync),
		DiscoveryFunc:             namespaced.namespaced,
		IgnoredResourcesFunc:      evaluators.IgnoredResources,
		InformersStarted:          k.started,
		Registry:                  generic.NewRegistry(evaluators.Evaluators()),
		UpdateFilter:              mayFreeQuota,
	})
	if err != nil {
		return fmt.Errorf("create the quota controller: %w", err)
	}
	k.loops = append(k.loops,
		func(ctx context.Context) { quotas.Run(ctx, quotaWorkers) },
		func(ctx context.Context) { quotas.Sync(ctx, namespaced.namespaced, kindSync) },
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
func (k *kinds) counted(kind schema.GroupVersionResource) (informers.GenericInformer, error) {
	if slices.Contains(measured(), kind) {
		return k.typed.ForResource(kind)
	}
	return k.objects.ForResource(kind), nil
}

// mayFreeQuota reports whether an update may free quota, which is calculated again then. The events have metadata only, with
// which the filter of Kubernetes panics.
func mayFreeQuota(kind schema.GroupVersionResource, _, _ any) bool {
	return slices.Contains(measured(), kind)
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
