package controlplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
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
	client   kubernetes.Interface
	metadata metadata.Interface
	typed    informers.SharedInformerFactory
	kinds    *kinds // the next ones to run
	loops    []func(context.Context)
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
		client: client, metadata: metadataClient,
		typed: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(trim)),
	}
	if c.kinds, err = c.newKinds(ctx); err != nil {
		return nil, err
	}
	return c, c.addSmall(ctx)
}

// addSmall adds namespace deletion, aggregated ClusterRoles and default ServiceAccounts.
func (c *controllers) addSmall(ctx context.Context) error {
	namespaces := namespace.NewNamespaceController(ctx, c.client, c.metadata,
		c.client.Discovery().ServerPreferredNamespacedResources, c.typed.Core().V1().Namespaces(), namespaceResync, corev1.FinalizerKubernetes)
	roles := clusterroleaggregation.NewClusterRoleAggregation(c.typed.Rbac().V1().ClusterRoles(), c.client.RbacV1())
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), c.typed.Core().V1().ServiceAccounts(),
		c.typed.Core().V1().Namespaces(), c.client, serviceaccount.DefaultServiceAccountsControllerOptions())
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
	var running sync.WaitGroup
	running.Go(func() { c.runKinds(ctx) })
	for _, loop := range c.loops {
		running.Go(func() { loop(ctx) })
	}
	running.Wait()
	c.typed.Shutdown()
}

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
