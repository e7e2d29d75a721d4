package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/watch"
)

const (
	// firstRetry and lastRetry bound the backoff after an error.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

// Object is what a Runner can reconcile.
type Object interface {
	client.Object
	condition.Setter
}

// Outside is what every controller needs of the world around it.
type Outside struct {
	Client client.Client
	// Live reads past the cache. It is asked after a conflict, and before what a cache must not mislead.
	Live     client.Reader
	Recorder record.EventRecorder
	Clock    clock.PassiveClock
	// Recent remembers what the API server answered to writes. Nil: nothing.
	Recent *Recent
	// Filter selects the objects that are this manager's. A Runner leaves all others alone, whatever event led to them.
	Filter watch.Filter
}

// OutsideOf is the Outside that a manager offers; events are recorded under the controller's name.
func OutsideOf(mgr ctrl.Manager, controllerName string, filter watch.Filter) Outside {
	return Outside{
		Filter:   filter,
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorderFor(controllerName), //nolint:staticcheck // the documented RBAC grants core/v1 events, not events.k8s.io
		Clock:    clock.RealClock{},
	}
}

// Runner reconciles one kind, as a Controller declares.
type Runner[T Object] struct {
	Outside
	name       string
	fresh      func() T
	conditions condition.Kind
	pausedBy   func(ctx context.Context, obj T) (bool, error)
	do         func(ctx context.Context, obj T) (Result, error)
	observed   func(obj T, generation int64)
	progress   *Progress
	metrics    *metrics

	written versions
	stale   streaks
	told    transitions
}

var _ reconcile.Reconciler = &Runner[*clusterv1.Machine]{}

// options are the controller options that go with a Runner: this many workers, and a backoff that stays
// below a minute.
func options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile reads the object, takes the steps that it needs and commits what they changed.
func (r *Runner[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := r.fresh()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading %s: %w", req.NamespacedName, err)
	}
	if !r.Filter.Selects(obj) {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if left, err := r.behind(ctx, obj); left > 0 || err != nil {
		return ctrl.Result{RequeueAfter: left}, err
	}
	if paused, err := r.paused(ctx, obj); paused || err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.run(ctx, obj)
	return r.conclude(ctx, req, result, err)
}

func (r *Runner[T]) forget(key types.NamespacedName) {
	r.written.forget(key)
	r.stale.end(key)
	r.told.forget(key)
}

// behind says for how long to wait for the cache, which does not show our own last write of the object. When that takes
// longer than an event normally does, the live object decides, so that nothing waits for a version that will never come.
func (r *Runner[T]) behind(ctx context.Context, obj T) (time.Duration, error) {
	key := client.ObjectKeyFromObject(obj)
	wanted, waiting := r.written.get(key)
	if !waiting {
		return 0, nil
	}
	if shows(obj.GetResourceVersion(), wanted.version) {
		r.written.forget(key)
		return 0, nil
	}
	now := r.Clock.Now()
	if left := wanted.confirm.Sub(now); left > 0 {
		return left, nil
	}
	live := r.fresh()
	err := r.Live.Get(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err): // the cache will say so, too
		live.SetResourceVersion(wanted.version)
	case err != nil:
		return 0, fmt.Errorf("reading %s, whose cached copy is older than our last write: %w", key, err)
	case live.GetResourceVersion() == obj.GetResourceVersion():
		r.written.forget(key)
		return 0, nil
	}
	pause := min(2*wanted.pause, staleLimit)
	r.written.remember(key, live.GetResourceVersion(), pause, now)
	return pause, nil
}

func (r *Runner[T]) paused(ctx context.Context, obj T) (bool, error) {
	if _, paused := obj.GetAnnotations()[clusterv1.PausedAnnotation]; paused {
		return true, nil
	}
	if r.pausedBy == nil {
		return false, nil
	}
	return r.pausedBy(ctx, obj)
}

// run lets the steps change obj and writes what they changed, also when one of them failed.
func (r *Runner[T]) run(ctx context.Context, obj T) (Result, error) {
	steps := &taken{controller: r.name, metrics: r.metrics}
	commit := newCommit(r.Outside, r.fresh, obj, steps)
	result, err := r.do(commit.into(ctx), obj)
	if err == nil {
		commit.observed, commit.patience = r.observed, r.patience(commit)
	}
	r.conditions.Summarize(obj)
	saved := commit.all(ctx)
	if saved == nil {
		commit.emit()
	}
	r.told.tell(ctrl.LoggerFrom(ctx), client.ObjectKeyFromObject(obj), steps)
	if commit.wrote {
		r.written.remember(client.ObjectKeyFromObject(obj), commit.latest.GetResourceVersion(), staleBackstop, r.Clock.Now())
	}
	return result.soonest(Again(commit.waits)), errors.Join(err, saved)
}

// patience says how long a status patch may be postponed; nil when none may be.
func (r *Runner[T]) patience(c *commit[T]) func(document) time.Duration {
	if r.progress == nil || c.object.GetDeletionTimestamp() != nil {
		return nil
	}
	return func(patch document) time.Duration {
		return r.progress.wait(patch, c.before, c.object, r.Clock.Now())
	}
}

// conclude turns a result and an error into what the workqueue understands.
func (r *Runner[T]) conclude(ctx context.Context, req ctrl.Request, result Result, err error) (ctrl.Result, error) {
	log := ctrl.LoggerFrom(ctx)
	if err == nil {
		r.stale.end(req.NamespacedName)
		if result.Waiting() != "" {
			log.V(4).Info("Waiting", "for", result.Waiting(), "deadline", result.After())
		}
		return ctrl.Result{RequeueAfter: result.After()}, nil
	}
	if !IsStale(err) {
		return ctrl.Result{}, retriable(err)
	}
	pause, silent := r.stale.next(req.NamespacedName)
	if !silent {
		return ctrl.Result{}, fmt.Errorf("still acting on old copies after %d retries: %w", staleTries, err)
	}
	log.V(4).Info("Acted on an old copy, trying again", "reason", err.Error(), "after", pause)
	return ctrl.Result{RequeueAfter: pause}, nil
}
