package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
)

const (
	// staleBackstop is how long a reconcile waits for the event of our own last write, which normally
	// comes within milliseconds.
	staleBackstop = time.Second
	// conflictDelay is the pause before trying again after acting on an old copy.
	conflictDelay = 50 * time.Millisecond
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
}

// From is the Outside that a manager offers; events are recorded under the controller's name.
func From(mgr ctrl.Manager, controllerName string) Outside {
	return Outside{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorderFor(controllerName), //nolint:staticcheck // the documented RBAC grants core/v1 events, not events.k8s.io
		Clock:    clock.RealClock{},
	}
}

// Runner reconciles one kind.
type Runner[T Object] struct {
	Outside
	// New is an empty object.
	New func() T
	// Conditions declares which conditions the kind derives from others.
	Conditions condition.Kind
	// Paused says whether an object is paused by something else than its own annotation, usually its
	// Cluster. A paused object is not touched at all. Nil: never.
	Paused func(ctx context.Context, obj T) (bool, error)
	// Do changes obj in memory and says what follows.
	Do func(ctx context.Context, obj T) (Result, error)
	// Observed records the generation that a reconcile without error has seen. Nil: the kind has no such field.
	Observed func(obj T, generation int64)
	// Progress declares which changes of status may wait a moment until they are overtaken. Nil: none.
	Progress *Progress

	written versions
	waiting unsettled
}

var _ reconcile.Reconciler = &Runner[*clusterv1.Machine]{}

// Options are the controller options that go with a Runner: this many workers, and a backoff that stays
// below a minute.
func Options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile reads the object, runs Do and commits what it changed.
func (r *Runner[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.forget(req.NamespacedName)
			r.waiting.settle(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading %s: %w", req.NamespacedName, err)
	}
	if r.written.newerThan(obj) {
		return ctrl.Result{RequeueAfter: staleBackstop}, nil
	}
	if paused, err := r.paused(ctx, obj); paused || err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.run(ctx, obj)
	return conclude(ctx, result, err)
}

func (r *Runner[T]) paused(ctx context.Context, obj T) (bool, error) {
	if _, paused := obj.GetAnnotations()[clusterv1.PausedAnnotation]; paused {
		return true, nil
	}
	if r.Paused == nil {
		return false, nil
	}
	return r.Paused(ctx, obj)
}

// run lets the steps change obj and writes what they changed, also when one of them failed.
func (r *Runner[T]) run(ctx context.Context, obj T) (Result, error) {
	commit := newCommit(r.Outside, r.New, obj)
	r.waiting.recall(obj)
	result, err := r.Do(commit.into(ctx), obj)
	if err == nil {
		commit.observed, commit.patience = r.Observed, r.patience(commit)
	}
	r.Conditions.Conclude(obj)
	saved := commit.all(ctx)
	key := client.ObjectKeyFromObject(obj)
	if saved == nil {
		commit.emit()
		if commit.waits == 0 {
			r.waiting.settle(key)
		}
	}
	if commit.wrote {
		r.written.remember(key, commit.version)
	}
	return result.soonest(Again(commit.waits)), errors.Join(err, saved)
}

// patience lets a status wait that changes by progress alone.
func (r *Runner[T]) patience(c *commit[T]) func(document) time.Duration {
	if r.Progress == nil || c.object.GetDeletionTimestamp() != nil {
		return nil
	}
	return func(patch document) time.Duration {
		if !r.Progress.covers(patch, c.before.GetConditions(), c.object.GetConditions()) {
			return 0
		}
		now := r.Clock.Now()
		return r.waiting.hold(c.before, c.object, now).Add(r.Progress.time()).Sub(now)
	}
}

// conclude turns a result and an error into what the workqueue understands.
func conclude(ctx context.Context, result Result, err error) (ctrl.Result, error) {
	log := ctrl.LoggerFrom(ctx)
	switch {
	case err != nil && IsStale(err):
		log.V(4).Info("Acted on an old copy, trying again", "reason", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, retriable(err)
	case result.Waiting() != "":
		log.V(4).Info("Waiting", "for", result.Waiting(), "deadline", result.After())
	}
	return ctrl.Result{RequeueAfter: result.After()}, nil
}
