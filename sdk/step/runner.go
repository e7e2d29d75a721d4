package step

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

const (
	// firstRetry and lastRetry are the limits of the backoff after errors.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

// Object is an object with conditions, as nearly all kinds are that a Runner reconciles.
type Object interface {
	client.Object
	condition.Setter
}

// Clients is what a controller needs to access the API server.
type Clients struct {
	Client client.Client
	// Live reads without the cache: after conflicts, and where a stale cache would be dangerous.
	Live     client.Reader
	Recorder record.EventRecorder
	Clock    clock.PassiveClock
	// Recent remembers responses to writes. Nil: they are not remembered.
	Recent *Recent
	// VisibleWait is how long Clients.AwaitVisible waits for the cache. Zero: five seconds; negative: it does not wait.
	VisibleWait time.Duration
	// Filter selects the objects of this manager. A Runner ignores all others, whatever event led to them.
	Filter watch.Filter
}

// ClientsOf returns the Clients of a manager. Events are recorded under the controller's name.
func ClientsOf(mgr ctrl.Manager, controllerName string, filter watch.Filter) Clients {
	return Clients{
		Filter:   filter,
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorderFor(controllerName), //nolint:staticcheck // the documented RBAC grants core/v1 events, not events.k8s.io
		Clock:    clock.RealClock{},
	}
}

// Runner is the reconciler of a Controller.
type Runner[T client.Object] struct {
	Clients
	name       string
	newObject  func() T
	selects    func(obj T) bool
	conditions condition.Kind
	pausedBy   func(ctx context.Context, obj T) (bool, error)
	reconcile  func(ctx context.Context, obj T) (Result, error)
	observed   func(obj T, generation int64)
	progress   *Progress
	// reports is set for kinds with metav1 conditions.
	reports     bool
	settle      Settle
	whilePaused func(obj T, paused metav1.Condition) []metav1.Condition
	metrics     *metrics

	written     versions
	stale       streaks
	transitions transitions
	held        held
	inert       inert
}

var _ reconcile.Reconciler = &Runner[*clusterv1.Machine]{}

// options returns controller options with a number of workers, and a backoff below a minute.
func options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile reads the object, runs its steps and commits their changes.
func (r *Runner[T]) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	began := r.Clock.Now()
	defer func() { r.metrics.reconciled(r.name, r.Clock.Since(began), result, err) }()
	return r.reconcileObject(ctx, req)
}

func (r *Runner[T]) reconcileObject(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := r.newObject()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading %s: %w", req.NamespacedName, err)
	}
	if !r.Filter.Selects(obj) || r.selects != nil && !r.selects(obj) {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if left, err := r.cacheLag(ctx, obj); left > 0 || err != nil {
		r.metrics.stale.WithLabelValues(r.name, reflect.Indirect(reflect.ValueOf(obj)).Type().Name()).Inc()
		return ctrl.Result{RequeueAfter: left}, err
	}
	if paused, err := r.paused(ctx, obj); paused != nil || err != nil {
		return ctrl.Result{}, errors.Join(err, r.reportPaused(ctx, obj, paused))
	}
	result, err := r.run(ctx, obj)
	return r.conclude(ctx, req, result, err)
}

func (r *Runner[T]) forget(key types.NamespacedName) {
	r.written.forget(key)
	r.stale.end(key)
	r.transitions.forget(key)
	r.held.forget(key)
	r.inert.forget(key)
}

// cacheLag returns how long to wait until our own last write of the object is in the cache. If it takes longer than usual, a live read
// decides, so that no reconcile waits for a version that never appears.
func (r *Runner[T]) cacheLag(ctx context.Context, obj T) (time.Duration, error) {
	key := client.ObjectKeyFromObject(obj)
	wanted, waiting := r.written.get(key)
	if !waiting {
		return 0, nil
	}
	if wanted.isIn(obj) {
		r.written.forget(key)
		return 0, nil
	}
	now := r.Clock.Now()
	if left := wanted.checkAt.Sub(now); left > 0 {
		return left, nil
	}
	live := r.newObject()
	err := r.Live.Get(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err): // The cache will catch up.
		pause := min(2*wanted.retryAfter, staleLimit)
		r.written.rememberGone(key, obj.GetUID(), pause, now)
		return pause, nil
	case err != nil:
		return 0, fmt.Errorf("reading %s, which is stale in the cache: %w", key, err)
	case live.GetResourceVersion() == obj.GetResourceVersion():
		r.written.forget(key)
		return 0, nil
	}
	pause := min(2*wanted.retryAfter, staleLimit)
	r.written.remember(key, live.GetResourceVersion(), pause, now)
	return pause, nil
}

// paused returns the condition Paused of an object that is paused; nil if it is not.
func (r *Runner[T]) paused(ctx context.Context, obj T) (*metav1.Condition, error) {
	var byCluster bool
	byAnnotation := hasPausedAnnotation(obj)
	if r.pausedBy != nil && (!byAnnotation || r.reports) {
		var err error
		if byCluster, err = r.pausedBy(ctx, obj); err != nil && !byAnnotation {
			return nil, err
		}
	}
	if !byCluster && !byAnnotation {
		return nil, nil
	}
	c := pausedReport(obj, byCluster, byAnnotation)
	return &c, nil
}

// reportPaused writes the condition Paused of an object that is paused. Nothing else is written then.
func (r *Runner[T]) reportPaused(ctx context.Context, obj T, paused *metav1.Condition) error {
	if paused == nil || !r.reports {
		return nil
	}
	commit := newCommit(r.Clients, r.newObject, obj, nil)
	commit.inert = &r.inert
	commit.Report([]metav1.Condition{*paused})
	if r.whilePaused != nil {
		commit.Report(r.whilePaused(obj, *paused))
	}
	err := commit.all(ctx)
	r.remember(obj, commit)
	return err
}

// run runs the steps and writes their changes, even if one of them failed.
func (r *Runner[T]) run(ctx context.Context, obj T) (Result, error) {
	steps := &stepLog{controller: r.name, metrics: r.metrics}
	commit := newCommit(r.Clients, r.newObject, obj, steps)
	commit.inert = &r.inert
	ctx = commit.into(ctx)
	result, err := contained(ctx, "controller "+r.name, func() (Result, error) { return r.reconcile(ctx, obj) })
	if err == nil {
		commit.observed, commit.delay, commit.hold = r.observed, r.delay(commit), r.hold(commit)
	}
	if len(commit.reports) > 0 {
		commit.Report([]metav1.Condition{pausedReport(obj, false, false)})
	}
	r.conditions.Summarize(conditionsOf(obj))
	saved := commit.all(ctx)
	if saved == nil {
		commit.emit()
	}
	r.transitions.observe(ctrl.LoggerFrom(ctx), client.ObjectKeyFromObject(obj), steps)
	r.remember(obj, commit)
	return result.merge(Again(commit.delayed)).merge(Again(commit.held)), errors.Join(err, saved)
}

// remember makes the next reconcile wait for what this one wrote.
func (r *Runner[T]) remember(obj T, commit *commit[T]) {
	key := client.ObjectKeyFromObject(obj)
	switch {
	case !commit.wrote:
	case isGone(commit.latest):
		r.written.rememberGone(key, commit.latest.GetUID(), staleBackstop, r.Clock.Now())
	default:
		r.written.remember(key, commit.latest.GetResourceVersion(), staleBackstop, r.Clock.Now())
	}
	if commit.delayed == 0 && commit.held == 0 {
		r.held.forget(key)
	}
}

// isGone reports whether an object is deleted, and has no finalizer that keeps it: then it no longer exists.
func isGone(obj client.Object) bool {
	return obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0
}

// hold returns the function that decides how long the first reports about an object are held back: see Settle.First. Nil: they are not.
func (r *Runner[T]) hold(c *commit[T]) func() time.Duration {
	before := reportsOf(c.before)
	if !r.settle.First || len(c.reports) == 0 || slices.ContainsFunc(c.reports, func(x metav1.Condition) bool {
		return x.Type != clusterv1.PausedCondition && report.Get(before, x.Type) != nil
	}) {
		return nil
	}
	return func() time.Duration {
		for _, t := range append(slices.Clip(r.settle.Conditions), clusterv1.AvailableCondition, clusterv1.ReadyCondition) {
			if c := report.Find(c.reports, t); c != nil && c.Status == metav1.ConditionTrue {
				return 0
			}
		}
		return r.held.left(client.ObjectKeyFromObject(c.object), r.Clock.Now(), heldFor)
	}
}

// delay returns the function that decides how long a status patch is delayed; nil if it is not.
func (r *Runner[T]) delay(c *commit[T]) func(statusPatch) time.Duration {
	before, _ := any(c.before).(Object)
	after, ok := any(c.object).(Object)
	progresses := r.progress != nil && ok && after.GetDeletionTimestamp() == nil
	was, isReported := any(c.before).(reported)
	is, _ := any(c.object).(reported)
	holds := isReported && (r.reports || r.settle.For > 0)
	if !progresses && !holds {
		return nil
	}
	return func(patch statusPatch) time.Duration {
		if holds {
			if most := heldBack(patch, was, is, r.settle); most > 0 {
				return r.held.left(client.ObjectKeyFromObject(c.object), r.Clock.Now(), most)
			}
		}
		if !progresses {
			return 0
		}
		if r.settle.For > 0 {
			patch = patch.withoutReports() // They must not make a write urgent.
		}
		return r.progress.wait(patch, before, after, r.Clock.Now(), r.held.progress())
	}
}

// conclude translates a result and an error for the work queue.
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
		return ctrl.Result{}, fmt.Errorf("the cache is still stale after %d retries: %w", staleTries, err)
	}
	log.V(4).Info("Retrying after a stale error", "reason", err.Error(), "after", pause)
	return ctrl.Result{RequeueAfter: pause}, nil
}
