package resourceset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controllers.
type Options struct {
	// Concurrency is how many ClusterResourceSets, and how many Clusters, are reconciled at the same time.
	Concurrency int
	// Filter selects the ClusterResourceSets that this manager reconciles.
	Filter watch.Filter
	// Namespace is the only namespace to watch. Empty: all.
	Namespace string
	// Clusters connects to workload clusters.
	Clusters *remote.Clusters
}

// Controller reconciles ClusterResourceSets.
type Controller struct {
	step.Outside
	contents *content.Reader
	ledger   *outcome.Ledger
}

// Setup adds the controllers of ClusterResourceSets and of their bindings to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	metadata, err := metadataCache(mgr, o.Namespace)
	if err != nil {
		return err
	}
	c := &Controller{
		Outside:  step.OutsideOf(mgr, "clusterresourceset-controller", o.Filter),
		contents: content.NewReader(metadata, mgr.GetAPIReader()), ledger: outcome.NewLedger(),
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	declared.Watches = append([]step.Watch{
		step.Handled(&clusterv1.Cluster{}, later(c.ofCluster), clusterChanges()),
		step.Handled(&addonsv1.ClusterResourceSetBinding{}, later(ofBinding)),
		step.From(c.ledger.Source(summaryDelay)),
	}, held(metadata, c.ofHeld)...)
	if err := step.Add(ctx, mgr, c.Outside, declared); err != nil {
		return err
	}
	return binding.Setup(ctx, mgr, binding.Options{
		Concurrency: o.Concurrency, Filter: o.Filter, Clusters: o.Clusters, Contents: c.contents, Ledger: c.ledger,
		Watches: held(metadata, binding.OfSets(c.Client, c.ofHeld)),
	})
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
	for _, kind := range []addonsv1.ClusterResourceSetResourceKind{addonsv1.ConfigMapClusterResourceSetResourceKind, addonsv1.SecretClusterResourceSetResourceKind} {
		var obj client.Object = content.Metadata(addonsv1.ResourceRef{Kind: string(kind)})
		out = append(out, step.From(source.Kind(metadata, obj, handler.EnqueueRequestsFromMapFunc(concerns), changed())))
	}
	return out
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*addonsv1.ClusterResourceSet, *scope] {
	return step.Controller[*addonsv1.ClusterResourceSet, *scope]{
		Name:    "clusterresourceset",
		New:     func() *addonsv1.ClusterResourceSet { return &addonsv1.ClusterResourceSet{} },
		Indexes: []step.Index{{Object: &addonsv1.ClusterResourceSet{}, Field: byResource, Values: resourceKeys}},
		Scope: func(_ context.Context, set *addonsv1.ClusterResourceSet) (*scope, error) {
			return &scope{set: set}, nil
		},
		Steps: []step.Step[*scope]{
			step.Do("adopt", adopt),
			step.Do("resources", c.resources),
			step.Do("clusters", c.clusters),
			step.Do("report", c.report).Sets(addonsv1.ResourcesAppliedCondition),
		},
		Deletion: []step.Step[*scope]{
			step.Do("unbind", c.unbind),
			step.Do("release", release),
		},
		Observed: func(set *addonsv1.ClusterResourceSet, g int64) { set.Status.ObservedGeneration = g },
	}
}

// summaryDelay is how long the condition of a ClusterResourceSet may lag behind changes of Clusters and bindings: only people read it,
// and a thousand Clusters that change at the same time must not be a thousand summaries of a thousand Clusters.
const summaryDelay = 500 * time.Millisecond

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	set *addonsv1.ClusterResourceSet
	// usable are the ConfigMaps and Secrets that exist; missing and wrong are the messages of those that do not, or have a wrong type.
	usable         []addonsv1.ResourceRef
	missing, wrong []string
	// invalid is why the selector is invalid.
	invalid error
	// targets are the selected Clusters that are ready, sorted by name.
	targets []target
}

// target is a Cluster and its binding, which is nil if it does not exist.
type target struct {
	cluster *clusterv1.Cluster
	binding *addonsv1.ClusterResourceSetBinding
}
