package rollout

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rollout/wave"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

const (
	// settle is how long after a change of a Cluster its rollout is reconciled, once for all that change meanwhile: each reconcile looks
	// at all Clusters of the rollout.
	settle = time.Second
	// invalidPoll is the interval while what the rollout refers to does not exist.
	invalidPoll = 30 * time.Second
	// confirmPoll is the interval while a Cluster reports that its change is complete, and its objects do not show it yet.
	confirmPoll = 3 * time.Second
	// planTime is how long a reconcile plans before it shows how far it is.
	planTime = 10 * time.Second
)

// Planner finds out what a change does to a Cluster.
type Planner interface {
	// Effect returns what a change does. An error means that it should be tried again.
	Effect(ctx context.Context, cluster *clusterv1.Cluster, change *fleetv1.RolloutChange, force bool) (rolloutplan.Effect, error)
	// Forget makes it read everything again: classes and templates are read once for many Clusters.
	Forget()
}

// Options configure the controller.
type Options struct {
	// Concurrency is the number of rollouts to process at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Planner finds out what changes do.
	Planner Planner
}

// Controller reconciles ClusterRollouts.
type Controller struct {
	step.Clients
	planner Planner
	// current has the IDs of the rollouts of which the cache has been found to be current since the process began.
	current sync.Map
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := New(step.ClientsOf(mgr, "clusterrollout-controller", o.Filter), o)
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// New returns a Controller.
func New(clients step.Clients, o Options) *Controller {
	return &Controller{Clients: clients, planner: o.Planner}
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*fleetv1.ClusterRollout, *scope] {
	return step.Controller[*fleetv1.ClusterRollout, *scope]{
		Name: "clusterrollout",
		New:  func() *fleetv1.ClusterRollout { return &fleetv1.ClusterRollout{} },
		Watches: []step.Watch{
			step.Settled(&clusterv1.Cluster{}, settle, c.ofCluster, predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(clusterChanges))),
			step.Mapped(&fleetv1.ClusterRolloutStrategy{}, c.ofStrategy),
			step.Mapped(&fleetv1.ClusterRollout{}, c.others, predicate.Or(watch.Deleted(), watch.Updated(rolloutEnds))),
		},
		Scope: c.scope,
		Steps: []step.Step[*scope]{
			step.Do("identify", identify),
			step.Do("resolve", c.resolve),
			step.Do("current", c.currentCache),
			step.Do("plan", c.plan),
			step.Do("confirm", c.confirm),
			step.Do("decide", c.decide),
			step.Do("mark", c.mark),
			step.Do("start", c.start),
		},
		Report:   []step.Step[*scope]{step.Do("record", record)},
		Reports:  reports,
		Observed: func(r *fleetv1.ClusterRollout, g int64) { r.Status.ObservedGeneration = g },
	}
}

// member is a Cluster that takes part in the rollout, or is to take part.
type member struct {
	// cluster is the cached Cluster. It must not be changed.
	cluster *clusterv1.Cluster
	// entry is nil until the Cluster is planned.
	entry *fleetv1.RolloutEntry
	// seen is what is observed of it.
	seen wave.Observation
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	rollout *fleetv1.ClusterRollout
	// strategy is valid, windows and checks are of it.
	strategy *fleetv1.RolloutStrategy
	windows  []window
	checks   []healthCheck
	// class is the ClusterClass of the change; nil if it has none.
	class *fleetv1.PlannedClass
	// members are in the order of their names.
	members []*member
	// unconfirmed is set if a Cluster reports that its change is complete, and that is not confirmed.
	unconfirmed bool
	// busy says with which Clusters other rollouts are not done.
	busy     []string
	invalid  string
	planning string
	decision *wave.Decision
	now      time.Time
}

func (c *Controller) scope(_ context.Context, r *fleetv1.ClusterRollout) (*scope, error) {
	return &scope{rollout: r, now: c.Clock.Now()}, nil
}

// id returns the ID of the rollout.
func (s *scope) id() types.UID {
	return types.UID(s.rollout.Annotations[fleetv1.RolloutIDAnnotation])
}

// planned returns the hash of the plan; empty if it is not complete.
func (s *scope) planned() string { return s.rollout.Annotations[fleetv1.RolloutPlanAnnotation] }

// owns reports whether an entry is of the rollout.
func (s *scope) owns(e *fleetv1.RolloutEntry) bool {
	return e != nil && e.ID == s.id() && e.Rollout == s.rollout.Name
}

// refuse waits until what is wrong is mended.
func (s *scope) refuse(message string) step.Result {
	s.invalid = message
	return step.WaitAtMost(invalidPoll, message)
}

// clusterChanges reports whether a change of a Cluster may matter to a rollout.
func clusterChanges(before, after *clusterv1.Cluster) bool {
	return before.Generation != after.Generation || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!sameLabels(before, after) || !sameAnnotations(before, after) || !sameReports(before, after)
}

// ofCluster returns the rollouts that a Cluster takes part in, or may be selected by.
func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	entry, _ := fleetv1.RolloutEntryOf(obj)
	return watch.RequestsFor(ctx, c.Client, &fleetv1.ClusterRolloutList{}, func(r *fleetv1.ClusterRollout) bool {
		if r.Ended() {
			return false
		}
		return entry != nil && entry.Rollout == r.Name || r.Annotations[fleetv1.RolloutPlanAnnotation] == "" || includesNew(r)
	}, client.InNamespace(obj.GetNamespace()))
}

// ofStrategy returns the rollouts that have not begun with a strategy yet.
func (c *Controller) ofStrategy(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &fleetv1.ClusterRolloutList{}, func(r *fleetv1.ClusterRollout) bool {
		return r.Spec.StrategyRef.Name == obj.GetName() && r.Status.Strategy == nil
	}, client.InNamespace(obj.GetNamespace()))
}

// others returns the other rollouts in a namespace that are not complete: they may wait for Clusters of one that has ended.
func (c *Controller) others(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &fleetv1.ClusterRolloutList{}, func(r *fleetv1.ClusterRollout) bool {
		return r.Name != obj.GetName() && !r.Ended()
	}, client.InNamespace(obj.GetNamespace()))
}

func rolloutEnds(before, after *fleetv1.ClusterRollout) bool { return before.Ended() != after.Ended() }
