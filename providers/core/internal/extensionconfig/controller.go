package extensionconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	// Concurrency is how many ExtensionConfigs are reconciled at the same time.
	Concurrency int
	// Filter selects the ExtensionConfigs that this manager reconciles.
	Filter watch.Filter
	// Caller calls the servers.
	Caller *wire.Caller
}

// Controller reconciles ExtensionConfigs.
type Controller struct {
	step.Clients
	hooks  *runtimecatalog.Catalog
	caller *wire.Caller
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	metadata, err := metadataCache(mgr)
	if err != nil {
		return err
	}
	all, err := allHooks()
	if err != nil {
		return fmt.Errorf("registering all hooks: %w", err)
	}
	c := &Controller{
		Clients: step.ClientsOf(mgr, "extensionconfig-controller", o.Filter), hooks: all, caller: o.Caller,
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	var secret client.Object = secretMetadata()
	declared.Watches = []step.Watch{step.From(source.Kind(metadata, secret,
		handler.EnqueueRequestsFromMapFunc(c.ofSecret), predicate.ResourceVersionChangedPredicate{}))}
	return step.Add(ctx, mgr, c.Clients, declared)
}

// metadataCache returns a cache of the metadata of all Secrets. The manager's cache has only those of Clusters. Of others, only the name is
// kept, whatever their number.
func metadataCache(mgr ctrl.Manager) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: lean,
	})
	if err != nil {
		return nil, fmt.Errorf("creating a cache of Secrets: %w", err)
	}
	return c, mgr.Add(c)
}

// lean removes the metadata that is not read.
func lean(in any) (any, error) {
	if m, ok := in.(*metav1.PartialObjectMetadata); ok {
		m.Labels, m.Annotations, m.ManagedFields, m.Finalizers, m.OwnerReferences = nil, nil, nil, nil, nil
	}
	return in, nil
}

func secretMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return m
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*runtimev1.ExtensionConfig, *runtimev1.ExtensionConfig] {
	return step.Controller[*runtimev1.ExtensionConfig, *runtimev1.ExtensionConfig]{
		Name:    "extensionconfig",
		New:     func() *runtimev1.ExtensionConfig { return &runtimev1.ExtensionConfig{} },
		Events:  changes(),
		Indexes: []step.Index{{Object: &runtimev1.ExtensionConfig{}, Field: bySecret, Values: secretKeys}},
		Scope:   step.Self[*runtimev1.ExtensionConfig],
		Steps: []step.Step[*runtimev1.ExtensionConfig]{
			step.Do("ca", c.ca),
			step.Do("discover", c.discover).Sets(runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition),
		},
		Reports: reports,
	}
}

// changes drops the events of our own status writes: discovering again would find the same.
func changes() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		predicate.LabelChangedPredicate{}, watch.Resynced())
}

// bySecret is the index of ExtensionConfigs by "<namespace>/<name>" of the Secret with their CA.
const bySecret = "extensionconfig.ca-secret"

func secretKeys(obj client.Object) []string {
	if ref, ok := obj.GetAnnotations()[runtimev1.InjectCAFromSecretAnnotation]; ok {
		return []string{ref}
	}
	return nil
}

// ofSecret maps the metadata of a Secret to the ExtensionConfigs that it is annotated on.
func (c *Controller) ofSecret(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.Requests(ctx, c.Client, &runtimev1.ExtensionConfigList{},
		client.MatchingFields{bySecret: client.ObjectKeyFromObject(obj).String()})
}
