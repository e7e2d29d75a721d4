package resourceset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// byResource is the index of ClusterResourceSets by "<kind>/<name>" of their ConfigMaps and Secrets.
const byResource = "clusterresourceset.resource"

func resourceKeys(obj client.Object) []string {
	set, ok := obj.(*addonsv1.ClusterResourceSet)
	if !ok {
		return nil
	}
	var keys []string
	for _, ref := range binding.Resources(set) {
		keys = append(keys, ref.Kind+"/"+ref.Name)
	}
	return keys
}

// metadataCache returns a cache of the metadata of ConfigMaps, and of Secrets of the documented type. The manager's cache is restricted
// to other Secrets, and a cache of whole ConfigMaps would have all those of the management cluster.
func metadataCache(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: lean,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Field: fields.OneTermEqualSelector("type", string(addonsv1.ClusterResourceSetSecretType))},
		},
	}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	c, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("creating a cache of ConfigMaps and Secrets: %w", err)
	}
	return c, mgr.Add(c)
}

// lean removes the metadata that is not read.
func lean(in any) (any, error) {
	if m, ok := in.(*metav1.PartialObjectMetadata); ok {
		m.Labels, m.Annotations, m.ManagedFields, m.Finalizers = nil, nil, nil, nil
	}
	return in, nil
}

// held watches ConfigMaps and Secrets.
func held(metadata cache.Cache, concerns handler.MapFunc) []step.Watch {
	var out []step.Watch
	for _, kind := range []addonsv1.ClusterResourceSetResourceKind{
		addonsv1.ConfigMapClusterResourceSetResourceKind, addonsv1.SecretClusterResourceSetResourceKind,
	} {
		var obj client.Object = content.Metadata(addonsv1.ResourceRef{Kind: string(kind)})
		out = append(out, step.From(source.Kind(metadata, obj, handler.EnqueueRequestsFromMapFunc(concerns), changed())))
	}
	return out
}

// ofHeld maps the metadata of a ConfigMap or Secret to the ClusterResourceSets that refer to it.
func (c *Controller) ofHeld(ctx context.Context, obj client.Object) []reconcile.Request {
	kind := obj.GetObjectKind().GroupVersionKind()
	if kind.GroupVersion() != (schema.GroupVersion{Version: "v1"}) {
		return nil
	}
	return watch.Requests(ctx, c.Client, &addonsv1.ClusterResourceSetList{}, client.InNamespace(obj.GetNamespace()),
		client.MatchingFields{byResource: kind.Kind + "/" + obj.GetName()})
}

// ofCluster maps a Cluster to the ClusterResourceSets that select it.
func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	cluster, ok := obj.(*clusterv1.Cluster)
	if !ok {
		return nil
	}
	return watch.RequestsFor(ctx, c.Client, &addonsv1.ClusterResourceSetList{},
		func(set *addonsv1.ClusterResourceSet) bool { return binding.Selects(set, cluster) }, client.InNamespace(cluster.Namespace))
}

// ofBinding maps a binding to the ClusterResourceSets that have an entry.
func ofBinding(_ context.Context, obj client.Object) []reconcile.Request {
	b, ok := obj.(*addonsv1.ClusterResourceSetBinding)
	if !ok {
		return nil
	}
	var out []reconcile.Request
	for _, e := range b.Spec.Bindings {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: b.Namespace, Name: e.ClusterResourceSetName}})
	}
	return out
}

func clusterChanges() predicate.Predicate { return predicate.Or(binding.Changes(), watch.Deleted()) }

// changed drops resyncs of ConfigMaps and Secrets.
func changed() predicate.Predicate { return predicate.ResourceVersionChangedPredicate{} }

// later handles events after a delay, so that many of them are one reconcile.
func later(concerns handler.MapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, obj := range objects {
			for _, r := range concerns(ctx, obj) {
				q.AddAfter(r, summaryDelay)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				add(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object) },
	}
}
