package clusterclass

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/core/internal/wake"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watchfilter"
)

// Discover asks the extensions of a class for their variables, in the order of its patches.
type Discover func(ctx context.Context, class *clusterv1.ClusterClass) ([]variables.Source, error)

// Options configure the controller.
type Options struct {
	// Concurrency is how many classes are reconciled at the same time.
	Concurrency int
	// Filter selects the objects that are this manager's.
	Filter watchfilter.Filter
	// Discover finds the variables of external patches. Nil: there are none.
	Discover Discover
}

const (
	// templateIndex finds classes by "<kind>.<group>/<name>" of their templates.
	templateIndex = "clusterclass.template"
	// definitionIndex finds classes by the names of the CustomResourceDefinitions of their templates.
	definitionIndex = "clusterclass.definition"
)

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1.ClusterClass{}, templateIndex, templateKeys); err != nil {
		return fmt.Errorf("indexing ClusterClasses by template: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1.ClusterClass{}, definitionIndex, definitionKeys); err != nil {
		return fmt.Errorf("indexing ClusterClasses by CustomResourceDefinition: %w", err)
	}
	cached := mgr.GetCache()
	versions := contract.APIVersions{Reader: cached}
	c := &Controller{
		Outside: step.From(mgr, "clusterclass", o.Filter), Discover: o.Discover,
		Versions: versions, External: external.Reader{Client: cached, Versions: versions},
	}
	built, err := ctrl.NewControllerManagedBy(mgr).Named("clusterclass").
		For(&clusterv1.ClusterClass{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}, o.Filter.Predicate())).
		// The metadata of all definitions is in the cache already. They are seldom written, so each event counts: one says that a
		// new kind is served.
		WatchesMetadata(&apiextensionsv1.CustomResourceDefinition{}, handler.EnqueueRequestsFromMapFunc(waitingFor(cached))).
		WithOptions(step.Options(o.Concurrency)).
		Build(c.runner())
	if err != nil {
		return fmt.Errorf("setting up the ClusterClass controller: %w", err)
	}
	watcher := external.NewWatcher(built, cached)
	h := handler.EnqueueRequestsFromMapFunc(classesOf(cached))
	c.Watch = func(ctx context.Context, kind schema.GroupVersionKind) error {
		return watcher.Watch(ctx, kind, h, arrivesOrLeaves())
	}
	return nil
}

func (c *Controller) runner() *step.Runner[*clusterv1.ClusterClass] {
	return &step.Runner[*clusterv1.ClusterClass]{
		Outside: c.Outside,
		New:     func() *clusterv1.ClusterClass { return &clusterv1.ClusterClass{} },
		Do:      c.Reconcile,
	}
}

// arrivesOrLeaves lets through templates that come, go, or change owners.
func arrivesOrLeaves() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return len(e.ObjectOld.GetOwnerReferences()) > len(e.ObjectNew.GetOwnerReferences())
	}}
}

func templateKeys(o client.Object) []string {
	class, ok := o.(*clusterv1.ClusterClass)
	if !ok {
		return nil
	}
	var keys []string
	for _, ref := range templateRefs(class) {
		keys = append(keys, templateKey(ref.GroupVersionKind(), ref.Name))
	}
	return keys
}

func templateKey(kind schema.GroupVersionKind, name string) string {
	return kind.GroupKind().String() + "/" + name
}

func classesOf(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		key := templateKey(o.GetObjectKind().GroupVersionKind(), o.GetName())
		return wake.All(ctx, reader, &clusterv1.ClusterClassList{}, client.InNamespace(o.GetNamespace()), client.MatchingFields{templateIndex: key})
	}
}

func definitionKeys(o client.Object) []string {
	class, ok := o.(*clusterv1.ClusterClass)
	if !ok {
		return nil
	}
	var keys []string
	for _, ref := range templateRefs(class) {
		keys = append(keys, contract.CRDName(ref.GroupVersionKind().GroupKind()))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// waitingFor maps a CustomResourceDefinition to the classes that have templates of its kind: they may wait for it, or refer to
// a version that is outdated now.
func waitingFor(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return wake.All(ctx, reader, &clusterv1.ClusterClassList{}, client.MatchingFields{definitionIndex: o.GetName()})
	}
}

// templateRefs are the references of a class, each object once.
func templateRefs(class *clusterv1.ClusterClass) []*corev1.ObjectReference {
	spec := &class.Spec
	all := []*corev1.ObjectReference{spec.Infrastructure.Ref, spec.ControlPlane.Ref}
	if machines := spec.ControlPlane.MachineInfrastructure; machines != nil {
		all = append(all, machines.Ref)
	}
	for i := range spec.Workers.MachineDeployments {
		t := &spec.Workers.MachineDeployments[i].Template
		all = append(all, t.Bootstrap.Ref, t.Infrastructure.Ref)
	}
	for i := range spec.Workers.MachinePools {
		t := &spec.Workers.MachinePools[i].Template
		all = append(all, t.Bootstrap.Ref, t.Infrastructure.Ref)
	}
	seen := map[corev1.ObjectReference]bool{}
	var out []*corev1.ObjectReference
	for _, ref := range all {
		if ref != nil && !seen[*ref] {
			seen[*ref] = true
			out = append(out, ref)
		}
	}
	return out
}
