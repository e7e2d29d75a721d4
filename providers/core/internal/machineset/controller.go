package machineset

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

const machineSetKind = "MachineSet"

// visibilityTimeout is how long to wait until the cache has all writes of a reconcile. Usually that takes milliseconds, and saves
// the next reconcile reads from the API server.
const visibilityTimeout = 5 * time.Second

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Recent is shared by all controllers of the manager. If nil, every confirmation reads from the API server.
	Recent *step.Recent
	// Preflight enables preflight checks, which delay Machines until the control plane is stable and of a compatible version.
	Preflight bool
}

// Controller reconciles MachineSets.
type Controller struct {
	step.Outside
	external  external.Reader
	applier   *ssa.Applier
	preflight bool
	names     *namesInUse
	// visibilityTimeout is how long to wait until the cache has all writes of a reconcile.
	visibilityTimeout time.Duration
}

// conditions declares the conditions that a MachineSet's Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{
		clusterv1.MachinesCreatedCondition, clusterv1.ResizedCondition, clusterv1.MachinesReadyCondition,
	}}
}

// progress delays the first write of status until a Machine is ready. That is safe, because this controller and the
// MachineDeployment controller count Machines and do not rely on status.replicas.
func progress() *step.Progress {
	return &step.Progress{
		First:     []string{"selector", "replicas", "fullyLabeledReplicas"},
		FirstTrue: []clusterv1.ConditionType{clusterv1.MachinesCreatedCondition},
	}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := newController(step.OutsideOf(mgr, "machineset-controller", o.Filter), o.Preflight)
	c.Recent = o.Recent
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Outside, declared)
}

func newController(outside step.Outside, preflight bool) *Controller {
	return &Controller{
		Outside: outside, preflight: preflight, names: newNamesInUse(), visibilityTimeout: visibilityTimeout,
		applier:  ssa.NewApplier(outside.Client, ssa.NewSchemas(outside.Client, outside.Live), fieldManager),
		external: external.Reader{Client: outside.Client, Versions: contract.APIVersions{Reader: outside.Client}},
	}
}

// declared returns the declaration of the controller. It has no steps for deletion: the garbage collector deletes the Machines,
// in the foreground if requested.
func (c *Controller) declared() step.Controller[*clusterv1.MachineSet, *scope] {
	return step.Controller[*clusterv1.MachineSet, *scope]{
		Name: "machineset",
		New:  func() *clusterv1.MachineSet { return &clusterv1.MachineSet{} },
		Watches: []step.Watch{
			step.Owned(&clusterv1.Machine{}),
			step.Mapped(&clusterv1.Machine{}, c.ofOrphan, watch.Orphaned()),
			step.Mapped(&clusterv1.Cluster{}, watch.Labeled(c.Client, &clusterv1.MachineSetList{}), watch.Cluster(watch.Paused, watch.ControlPlaneReady)),
		},
		Paused: ownership.PausedByCluster[*clusterv1.MachineSet](c.Client),
		Scope:  c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", c.exists),
			step.Do("adopt", c.adopt),
			step.Do("collect", c.collect),
			step.Do("confirm", c.confirm),
			step.Do("retire", c.retire),
			step.Do("sync", c.sync),
			step.Do("complete", c.complete),
			step.Do("remediate", c.remediate),
			step.Do("scale", c.scale),
		},
		Report: []step.Step[*scope]{
			step.Do("status", c.status),
			step.Do("problems", problems),
		},
		ErrorEvent: "ReconcileError",
		Conditions: conditions(),
		Observed:   func(set *clusterv1.MachineSet, g int64) { set.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	set *clusterv1.MachineSet
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// machines are the Machines of the set, sorted by name. Set by collect from the cache, and by confirm from the API server.
	machines []*clusterv1.Machine
	// orphans is the number of Machines that the set could not adopt. They count as replicas, and are never deleted.
	orphans int
	// listed is whether machines has been set, and live whether from the API server.
	listed, live bool
	// change is how the number of Machines has to change.
	change change
	// generation is the generation of the names of new Machines.
	generation int
	// incomplete is whether a Machine or its objects could not be created.
	incomplete bool
	// problems are the errors of individual Machines and objects, which do not stop the work on others.
	problems []error
}

// change is the number of Machines to create, or the Machines to delete.
type change struct {
	create int
	delete []*clusterv1.Machine
}

// report records an error that concerns only one object.
func (s *scope) report(err error) {
	if err != nil {
		s.problems = append(s.problems, err)
	}
}

// problems returns the errors of individual objects.
func problems(_ context.Context, s *scope) (step.Result, error) {
	return step.Done(), errors.Join(s.problems...)
}

func (c *Controller) scope(ctx context.Context, set *clusterv1.MachineSet) (*scope, error) {
	cluster, err := ownership.ClusterNamed(ctx, c.Client, client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.ClusterName})
	return &scope{set: set, cluster: cluster}, err
}

// exists waits for the Cluster.
func (c *Controller) exists(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster == nil {
		return step.Wait("Cluster " + s.set.Spec.ClusterName + " (spec.clusterName) to exist"), nil
	}
	return step.Done(), nil
}

// ofOrphan maps a Machine without controller to the MachineSets whose selector it matches.
func (c *Controller) ofOrphan(ctx context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	adopts := func(set *clusterv1.MachineSet) bool { return selects(set, m) }
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachineSetList{}, adopts, ownership.InCluster(m.Namespace, m.Spec.ClusterName))
}

func selects(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labelsOf(m))
}
