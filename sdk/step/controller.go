package step

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step/internal/current"
)

// Controller declares how objects of one kind are reconciled, by steps over scopes of type S. It is data: Add adds it to a
// manager, and tests use Runner. For kinds without conditions, such as ConfigMap, the conditions of steps and Progress have no effect.
type Controller[T client.Object, S any] struct {
	// Name is the controller's name in logs and metrics, such as "machine".
	Name string
	// New returns an empty object.
	New func() T
	// Selects reports whether the controller reconciles an object; others are left alone, whatever event led to them. Several controllers
	// can thus share a kind. Nil: all objects.
	Selects func(obj T) bool
	// Cache has the objects of the kind. Nil: that of the manager has them. Clients.Client must read them from it, or from the API server.
	Cache cache.Cache
	// Events selects the events of objects of the kind itself. Nil: all, including the resyncs that --sync-period asks for.
	Events predicate.Predicate
	// Watches are the other sources of reconciles.
	Watches []Watch
	// Indexes are the field indexes that the controller lists objects by.
	Indexes []Index
	// Concurrency is how many objects are reconciled at the same time.
	Concurrency int

	// Paused reports whether an object is paused other than by its own annotation, usually by its Cluster. A paused object is
	// not reconciled at all. Nil: never.
	Paused func(ctx context.Context, obj T) (bool, error)
	// Scope reads what the steps need.
	Scope func(ctx context.Context, obj T) (S, error)
	// Steps reconcile an object that is not being deleted.
	Steps []Step[S]
	// Deletion are the steps for an object that is being deleted. None: such objects are not reconciled.
	Deletion []Step[S]
	// Report are steps that run last, even if an earlier step failed, waits or stopped: they summarize the results in the
	// status. All of them run, as in All.
	Report []Step[S]

	// Reports returns the metav1 conditions of an object, after its steps and Report have run, whatever their results; those of report.None
	// are removed, and all others stay. It has no effects. Paused is added to what it returns. Nil: the kind has no such conditions.
	Reports func(s S) []metav1.Condition
	// Settle declares which writes of metav1 conditions and counters are held back. Zero: those by which no condition becomes True or is no
	// longer True.
	Settle Settle
	// WhilePaused returns further metav1 conditions of an object that is paused, given its condition Paused. Nil: there are none.
	WhilePaused func(obj T, paused metav1.Condition) []metav1.Condition

	// Conclude may replace the result and the error of the steps, and set conditions accordingly. Nil: they are kept.
	Conclude func(ctx context.Context, s S, result Result, err error) (Result, error)
	// ErrorEvent is the reason of a Warning event for errors other than stale ones. Empty: no event.
	ErrorEvent string
	// Conditions declares which conditions are derived from others.
	Conditions condition.Kind
	// Observed records the generation that was reconciled without an error. Nil: the kind has no such field.
	Observed func(obj T, generation int64)
	// Progress declares which status writes may be delayed. Nil: none.
	Progress *Progress
}

// Watch adds one watch to a controller.
type Watch func(b *builder.Builder) *builder.Builder

// Owned watches the objects of a kind that an object of the reconciled kind controls.
func Owned(obj client.Object, events ...predicate.Predicate) Watch {
	return func(b *builder.Builder) *builder.Builder {
		return b.Owns(obj, builder.WithPredicates(orAllChanges(events)...))
	}
}

// Mapped watches objects of a kind, and maps each to the objects to reconcile.
func Mapped(obj client.Object, concerns handler.MapFunc, events ...predicate.Predicate) Watch {
	return func(b *builder.Builder) *builder.Builder {
		return b.Watches(obj, handler.EnqueueRequestsFromMapFunc(concerns), builder.WithPredicates(orAllChanges(events)...))
	}
}

// Handled watches objects of a kind with a custom handler. Without events, all events are handled.
func Handled(obj client.Object, h handler.EventHandler, events ...predicate.Predicate) Watch {
	return func(b *builder.Builder) *builder.Builder {
		return b.Watches(obj, h, builder.WithPredicates(events...))
	}
}

// MappedMetadata is Mapped for a kind of which only the metadata is cached. Without events, all events are handled.
func MappedMetadata(obj client.Object, concerns handler.MapFunc, events ...predicate.Predicate) Watch {
	return func(b *builder.Builder) *builder.Builder {
		return b.WatchesMetadata(obj, handler.EnqueueRequestsFromMapFunc(concerns), builder.WithPredicates(events...))
	}
}

// From watches a source.
func From(s source.Source) Watch {
	return func(b *builder.Builder) *builder.Builder { return b.WatchesRawSource(s) }
}

// orAllChanges returns events, or a predicate that drops resyncs if there are none.
func orAllChanges(events []predicate.Predicate) []predicate.Predicate {
	if len(events) == 0 {
		return []predicate.Predicate{predicate.ResourceVersionChangedPredicate{}}
	}
	return events
}

// Index is a field index of a kind.
type Index struct {
	Object client.Object
	Field  string
	Values client.IndexerFunc
}

// Addable is a Controller of any kind.
type Addable interface {
	Add(ctx context.Context, mgr ctrl.Manager, clients Clients) (controller.Controller, error)
}

// Add adds controllers to a manager. It returns the errors of all that cannot be added.
func Add(ctx context.Context, mgr ctrl.Manager, clients Clients, controllers ...Addable) error {
	var errs []error
	for _, c := range controllers {
		_, err := c.Add(ctx, mgr, clients)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Add adds the controller to a manager. The result can be given more sources, for kinds that are only known at run time; those
// that do not need it use the function Add.
func (c Controller[T, S]) Add(ctx context.Context, mgr ctrl.Manager, clients Clients) (controller.Controller, error) {
	for _, i := range c.Indexes {
		if err := mgr.GetFieldIndexer().IndexField(ctx, i.Object, i.Field, i.Values); err != nil {
			return nil, fmt.Errorf("indexing %T by %s: %w", i.Object, i.Field, err)
		}
	}
	events := []predicate.Predicate{clients.Filter.Predicate()}
	if c.Selects != nil {
		events = append(events, predicate.NewPredicateFuncs(func(obj client.Object) bool {
			typed, ok := obj.(T)
			return ok && c.Selects(typed)
		}))
	}
	if c.Events != nil {
		events = append(events, c.Events)
	}
	b := ctrl.NewControllerManagedBy(mgr).Named(c.Name).WithOptions(options(c.Concurrency))
	if c.Cache == nil {
		b = b.For(c.New(), builder.WithPredicates(events...))
	} else {
		b = b.WatchesRawSource(source.Kind[client.Object](c.Cache, c.New(), &handler.EnqueueRequestForObject{}, events...))
	}
	for _, add := range c.Watches {
		b = add(b)
	}
	built, err := b.Build(c.Runner(clients))
	if err != nil {
		return nil, fmt.Errorf("setting up controller %s: %w", c.Name, err)
	}
	return built, nil
}

// Runner returns the controller's reconciler.
func (c Controller[T, S]) Runner(clients Clients) *Runner[T] {
	return &Runner[T]{
		Clients: clients, name: c.Name, newObject: c.New, selects: c.Selects, conditions: c.Conditions, pausedBy: c.Paused,
		reconcile: c.reconcile, observed: c.Observed, progress: c.Progress, metrics: newMetrics(ctrlmetrics.Registry),
		reports: c.Reports != nil, settle: c.Settle, whilePaused: c.WhilePaused,
	}
}

// Step returns the step with a name; it may be a part of other steps. If there is none, the step that is returned fails.
func (c Controller[T, S]) Step(name string) Step[S] {
	if one, ok := stepNamed(name, c.Steps, c.Deletion, c.Report); ok {
		return one
	}
	return Do(name, func(context.Context, S) (Result, error) {
		return Result{}, fmt.Errorf("controller %s has no step %q", c.Name, name)
	})
}

// Names returns the names of all steps, in order, those of Deletion and Report last.
func (c Controller[T, S]) Names() []string {
	return append(append(names(c.Steps), names(c.Deletion)...), names(c.Report)...)
}

// reconcile runs the steps for an object.
func (c Controller[T, S]) reconcile(ctx context.Context, obj T) (Result, error) {
	steps := c.Steps
	if obj.GetDeletionTimestamp() != nil {
		steps = c.Deletion
	}
	if len(steps) == 0 {
		return Stop(), nil
	}
	s, err := c.Scope(ctx, obj)
	if err != nil {
		return Result{}, err
	}
	result, err := InOrder(steps...).run(ctx, s)
	if len(c.Report) > 0 {
		reported, failed := All(c.Report...).run(ctx, s)
		result.after = result.merge(reported).after
		err = errors.Join(err, failed)
	}
	if c.Conclude != nil {
		result, err = c.Conclude(ctx, s, result, err)
	}
	if r, ok := current.Of(ctx); ok && c.Reports != nil {
		c.Conditions.Summarize(conditionsOf(obj)) // Reports may repeat Ready.
		r.Report(c.Reports(s))
	}
	if err != nil && c.ErrorEvent != "" && !IsStale(err) {
		Warning(ctx, c.ErrorEvent, "%v", err)
	}
	return result, err
}

// Self is the Scope of controllers whose steps need only the object.
func Self[T client.Object](_ context.Context, obj T) (T, error) { return obj, nil }
