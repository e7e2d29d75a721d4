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
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/ssa"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watch"
)

// machineSetKind is the kind that this package reconciles.
const machineSetKind = "MachineSet"

// patience is how long a reconcile waits for the cache to show what it did. Usually that takes milliseconds, and saves
// the next reconcile from asking the API server.
const patience = 5 * time.Second

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that are this manager's.
	Filter watch.Filter
	// Recent is shared by all controllers of the manager. Nil: every confirmation is a read.
	Recent *step.Recent
	// Preflight is whether Machines wait for a control plane that is ready for them.
	Preflight bool
}

// Controller reconciles MachineSets.
type Controller struct {
	step.Outside
	external  external.Reader
	applier   *ssa.Applier
	preflight bool
	names     *namesInUse
	// patience is how long a reconcile waits, once, for the cache to show what it did.
	patience time.Duration
}

// conditions declares what feeds a MachineSet's Ready.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{
		clusterv1.MachinesCreatedCondition, clusterv1.ResizedCondition, clusterv1.MachinesReadyCondition,
	}}
}

// progress: a new MachineSet first says something when a Machine is ready. Machines are counted, by this controller and by
// that of MachineDeployments: neither decides anything by status.replicas.
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
	_, err := declared.Add(ctx, mgr, c.Outside)
	return err
}

func newController(outside step.Outside, preflight bool) *Controller {
	return &Controller{
		Outside: outside, preflight: preflight, names: newNamesInUse(), patience: patience,
		applier:  ssa.NewApplier(outside.Client, ssa.NewSchemas(ssa.Cluster{Metadata: outside.Client, Live: outside.Live}), fieldManager),
		external: external.Reader{Client: outside.Client, Versions: contract.APIVersions{Reader: outside.Client}},
	}
}

// declared is how a MachineSet gets to have as many Machines as it asks for. One that is being deleted is the garbage
// collector's, which takes the Machines too, in the foreground if asked to.
func (c *Controller) declared() step.Controller[*clusterv1.MachineSet, *scope] {
	return step.Controller[*clusterv1.MachineSet, *scope]{
		Name: "machineset",
		New:  func() *clusterv1.MachineSet { return &clusterv1.MachineSet{} },
		Watches: []step.Watch{
			step.Owned(&clusterv1.Machine{}),
			step.Mapped(&clusterv1.Machine{}, c.forOrphan, watch.Orphaned()),
			step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused, watch.ControlPlaneReady)),
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

// scope is what the steps work on.
type scope struct {
	set *clusterv1.MachineSet
	// cluster is nil when it does not exist.
	cluster *clusterv1.Cluster
	// machines are those of the set, by name; filled by collect, and by confirm with what is there in fact.
	machines []*clusterv1.Machine
	// orphans is how many Machines the set is to adopt and could not: they take the place of others, and are never deleted.
	orphans int
	// known is whether machines is filled.
	known bool
	// change is what happens to the number of Machines.
	change change
	// generation is that of the names that Machines get.
	generation int
	// incomplete is whether objects of a Machine could not be made.
	incomplete bool
	// problems are those of single objects, which do not keep the others from being taken care of.
	problems []error
}

// change is how many Machines to create, or which ones to delete.
type change struct {
	create int
	delete []*clusterv1.Machine
}

// report keeps an error that concerns one object alone.
func (s *scope) report(err error) {
	if err != nil {
		s.problems = append(s.problems, err)
	}
}

// problems returns the errors of single objects.
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
		return step.Wait("Cluster " + s.set.Spec.ClusterName + ", which spec.clusterName names, to exist"), nil
	}
	return step.Done(), nil
}

// ofCluster maps a Cluster to its MachineSets.
func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.Requests(ctx, c.Client, &clusterv1.MachineSetList{}, inCluster(obj.GetNamespace(), obj.GetName())...)
}

// forOrphan maps a Machine without controller to the MachineSets whose selector it matches.
func (c *Controller) forOrphan(ctx context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	adopts := func(set *clusterv1.MachineSet) bool { return selects(set, m) }
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachineSetList{}, adopts, inCluster(m.Namespace, m.Spec.ClusterName)...)
}

func inCluster(namespace, name string) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}}
}

func selects(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labelsOf(m))
}
