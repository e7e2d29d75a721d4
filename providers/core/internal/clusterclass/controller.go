package clusterclass

import (
	"context"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/mutation"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Discover calls the extensions of a class for their variables, in the order of its patches.
type Discover func(ctx context.Context, class *clusterv1.ClusterClass) ([]variables.Source, error)

// Options configure the controller.
type Options struct {
	// Concurrency is how many classes are reconciled at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Discover returns the variables of external patches. If it is nil, there are none.
	Discover Discover
}

const (
	// templateIndex indexes classes by "<kind>.<group>/<name>" of their templates.
	templateIndex = "clusterclass.template"
	// definitionIndex indexes classes by the names of the CustomResourceDefinitions of their templates.
	definitionIndex = "clusterclass.definition"
)

// Controller reconciles ClusterClasses.
type Controller struct {
	step.Clients
	// Discover returns the variables of external patches. If it is nil, there are none.
	Discover Discover
	Versions contract.APIVersions
	External external.Reader
	// Watch starts watching templates of a kind, unless they are watched already.
	Watch func(ctx context.Context, kind schema.GroupVersionKind) error
}

// scope is the state of one reconcile.
type scope struct {
	*clusterv1.ClusterClass
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	cached := mgr.GetCache()
	versions := contract.APIVersions{Reader: cached}
	c := &Controller{
		Clients: step.ClientsOf(mgr, "clusterclass", o.Filter), Discover: o.Discover,
		Versions: versions, External: external.Reader{Client: cached, Versions: versions},
	}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	if o.Discover != nil {
		declared.Watches = append(declared.Watches, step.Mapped(&runtimev1.ExtensionConfig{}, ofExtension(cached), extension.Changes()))
	}
	built, err := declared.Add(ctx, mgr, c.Clients)
	if err != nil {
		return err
	}
	watcher := external.NewWatcher(built, cached)
	h := handler.EnqueueRequestsFromMapFunc(ofTemplate(cached))
	c.Watch = func(ctx context.Context, kind schema.GroupVersionKind) error {
		return watcher.Watch(ctx, kind, h, relevantTemplate())
	}
	return nil
}

// declared returns the controller's declaration.
func (c *Controller) declared() step.Controller[*clusterv1.ClusterClass, *scope] {
	return step.Controller[*clusterv1.ClusterClass, *scope]{
		Name: "clusterclass",
		New:  func() *clusterv1.ClusterClass { return &clusterv1.ClusterClass{} },
		// Not those of the status: after an error, extensions are called again with a delay that grows, even if they return another
		// message each time.
		Events: predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{},
			watch.Resynced()),
		Indexes: []step.Index{
			{Object: &clusterv1.ClusterClass{}, Field: templateIndex, Values: templateKeys},
			{Object: &clusterv1.ClusterClass{}, Field: definitionIndex, Values: definitionKeys},
		},
		// The metadata of all definitions is cached anyway. There is no predicate: definitions are rarely written, and any event can
		// be the one after which a kind is served.
		Watches: []step.Watch{step.MappedMetadata(&apiextensionsv1.CustomResourceDefinition{}, ofDefinition(c.Client))},
		Scope: func(_ context.Context, class *clusterv1.ClusterClass) (*scope, error) {
			return &scope{ClusterClass: class}, nil
		},
		Steps: []step.Step[*scope]{
			step.All(
				step.Do("variables", c.variables).Sets(clusterv1.ClusterClassVariablesReconciledV1Beta1Condition),
				step.Do("own", c.own),
				step.Do("versions", c.versions).Sets(clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition),
			),
			step.Do("observe", c.observe),
		},
		Reports: reports,
	}
}

// relevantTemplate selects events of templates that are created or deleted, or lose an owner.
func relevantTemplate() predicate.Predicate {
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

// ofTemplate maps a template to the classes that refer to it.
func ofTemplate(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		key := templateKey(o.GetObjectKind().GroupVersionKind(), o.GetName())
		return watch.Requests(ctx, reader, &clusterv1.ClusterClassList{},
			client.InNamespace(o.GetNamespace()), client.MatchingFields{templateIndex: key})
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

// ofDefinition maps a CustomResourceDefinition to the classes with templates of its kind: they may wait for it, or refer to a
// version that has become outdated.
func ofDefinition(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return watch.Requests(ctx, reader, &clusterv1.ClusterClassList{}, client.MatchingFields{definitionIndex: o.GetName()})
	}
}

// ofExtension maps an ExtensionConfig to the classes whose variables it defines.
func ofExtension(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		classes, err := mutation.Classes(ctx, reader, o.GetName())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find the classes to reconcile")
		}
		var out []reconcile.Request
		for _, class := range classes {
			out = append(out, reconcile.Request{NamespacedName: class})
		}
		return out
	}
}

// templateRefs returns the references to the templates of a class, without duplicates.
func templateRefs(class *clusterv1.ClusterClass) []clusterv1.ClusterClassTemplateReference {
	spec := &class.Spec
	all := []clusterv1.ClusterClassTemplateReference{
		spec.Infrastructure.TemplateRef, spec.ControlPlane.TemplateRef, spec.ControlPlane.MachineInfrastructure.TemplateRef,
	}
	for i := range spec.Workers.MachineDeployments {
		t := &spec.Workers.MachineDeployments[i]
		all = append(all, t.Bootstrap.TemplateRef, t.Infrastructure.TemplateRef)
	}
	for i := range spec.Workers.MachinePools {
		t := &spec.Workers.MachinePools[i]
		all = append(all, t.Bootstrap.TemplateRef, t.Infrastructure.TemplateRef)
	}
	seen := map[clusterv1.ClusterClassTemplateReference]bool{}
	var out []clusterv1.ClusterClassTemplateReference
	for _, ref := range all {
		if ref.IsDefined() && !seen[ref] {
			seen[ref] = true
			out = append(out, ref)
		}
	}
	return out
}
