package machinedeployment

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/core/internal/machineset/tally"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/ssa"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watch"
)

const (
	machineDeploymentKind = "MachineDeployment"
	machineSetKind        = "MachineSet"
	// fieldManager owns what a MachineDeployment applies to its MachineSets.
	fieldManager = "capi-machinedeployment"
	// patience is how long a reconcile waits, for each write, until the cache shows it. Usually that takes milliseconds, and
	// saves the next reconcile from asking the API server.
	patience = 5 * time.Second
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that are this manager's.
	Filter watch.Filter
	// Recent is shared by all controllers of the manager. Nil: every confirmation is a read.
	Recent *step.Recent
}

// applier is the part of an ssa.Applier that the controller needs.
type applier interface {
	// differs is whether apply would send anything.
	differs(ctx context.Context, live, desired *clusterv1.MachineSet) (bool, error)
	apply(ctx context.Context, live, desired *clusterv1.MachineSet) (*clusterv1.MachineSet, bool, error)
}

// Controller reconciles MachineDeployments.
type Controller struct {
	step.Outside
	external external.Reader
	sets     applier
	// patience is how long a reconcile waits, for each write, until the cache shows it.
	patience time.Duration
}

// conditions declares what feeds a MachineDeployment's Ready.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.MachineDeploymentAvailableCondition}}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := newController(step.OutsideOf(mgr, "machinedeployment-controller", o.Filter))
	c.Recent = o.Recent
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	_, err := declared.Add(ctx, mgr, c.Outside)
	return err
}

func newController(outside step.Outside) *Controller {
	return &Controller{
		Outside:  outside,
		external: external.Reader{Client: outside.Client, Versions: contract.APIVersions{Reader: outside.Client}},
		sets:     serverSide{ssa.NewApplier(outside.Client, ssa.NewSchemas(ssa.Cluster{Metadata: outside.Client, Live: outside.Live}), fieldManager)},
		patience: patience,
	}
}

// progress: a new MachineDeployment first says something when a Machine is ready.
func progress() *step.Progress {
	return &step.Progress{First: []string{"phase", "selector", "replicas", "updatedReplicas", "unavailableReplicas"}}
}

// declared is how the MachineSets of a MachineDeployment move toward what it asks for. One that is being deleted is the garbage
// collector's, which takes the MachineSets too, in the foreground if asked to.
func (c *Controller) declared() step.Controller[*clusterv1.MachineDeployment, *scope] {
	return step.Controller[*clusterv1.MachineDeployment, *scope]{
		Name: "machinedeployment",
		New:  func() *clusterv1.MachineDeployment { return &clusterv1.MachineDeployment{} },
		Watches: []step.Watch{
			step.Owned(&clusterv1.MachineSet{}),
			step.Mapped(&clusterv1.MachineSet{}, c.forOrphan, watch.Orphaned()),
			step.Mapped(&clusterv1.Machine{}, ofMachine, leaves()),
			step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused)),
		},
		Paused: ownership.PausedByCluster[*clusterv1.MachineDeployment](c.Client),
		Scope:  c.scope,
		Steps: []step.Step[*scope]{
			step.Do("check", c.check),
			step.Do("adopt", c.adopt),
			step.Do("collect", c.collect),
			step.Do("choose", c.choose),
			step.Do("plan", c.plan),
			step.Do("confirm", c.confirm),
			step.Do("write", c.write),
			step.Do("clean", c.clean),
		},
		Report:     []step.Step[*scope]{step.Do("status", status)},
		ErrorEvent: "ReconcileError",
		Conditions: conditions(),
		Observed:   func(md *clusterv1.MachineDeployment, g int64) { md.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
}

// scope is what the steps work on.
type scope struct {
	deployment *clusterv1.MachineDeployment
	// cluster is nil when it does not exist.
	cluster *clusterv1.Cluster
	// sets are the MachineSets that are not being deleted, oldest first. Filled by collect, and brought up to
	// date by write.
	sets []*clusterv1.MachineSet
	// names are those of all MachineSets of the Cluster, also of those that are being deleted or belong to others.
	names map[string]bool
	// known is whether sets is filled.
	known bool
	// tallies are the Machines of the MachineSets, by the set's UID.
	tallies map[types.UID]*tally.Tally
	// pending is whether a MachineSet has to be written.
	pending bool
	// current is the one of sets that has the deployment's template; nil if there is none.
	current *clusterv1.MachineSet
	// fresh is how the current set is to be called when it has to be made.
	fresh identity
	// surge and unavailable are the resolved bounds of the strategy; zero for OnDelete.
	surge, unavailable int32
	targets            rollout.Targets
}

// old are the sets of former templates, oldest first.
func (s *scope) old() []*clusterv1.MachineSet {
	var out []*clusterv1.MachineSet
	for _, set := range s.sets {
		if set != s.current {
			out = append(out, set)
		}
	}
	return out
}

func (c *Controller) scope(ctx context.Context, md *clusterv1.MachineDeployment) (*scope, error) {
	cluster, err := ownership.ClusterNamed(ctx, c.Client, client.ObjectKey{Namespace: md.Namespace, Name: md.Spec.ClusterName})
	return &scope{deployment: md, cluster: cluster}, err
}

// check waits for the Cluster, and refuses an object that no webhook has seen.
func (c *Controller) check(_ context.Context, s *scope) (step.Result, error) {
	md := s.deployment
	if md.Spec.Replicas == nil {
		return step.Done(), step.Terminal(fmt.Errorf("MachineDeployment %s has no spec.replicas: its webhook defaults it, write the object again", md.Name))
	}
	if s.cluster == nil {
		return step.Wait("Cluster " + md.Spec.ClusterName + ", which spec.clusterName names, to exist"), nil
	}
	return step.Done(), nil
}

// ofCluster maps a Cluster to its MachineDeployments.
func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.Requests(ctx, c.Client, &clusterv1.MachineDeploymentList{}, inCluster(obj.GetNamespace(), obj.GetName())...)
}

// forOrphan maps a MachineSet without controller to the MachineDeployments whose selector it matches.
func (c *Controller) forOrphan(ctx context.Context, obj client.Object) []reconcile.Request {
	set, ok := obj.(*clusterv1.MachineSet)
	if !ok {
		return nil
	}
	adopts := func(md *clusterv1.MachineDeployment) bool {
		selector, err := metav1.LabelSelectorAsSelector(&md.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(set.Labels))
	}
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachineDeploymentList{}, adopts, inCluster(set.Namespace, set.Spec.ClusterName)...)
}

func inCluster(namespace, name string) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}}
}

// ofMachine maps a Machine to its MachineDeployment.
func ofMachine(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[clusterv1.MachineDeploymentNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
}

// leaves lets Machines through that begin to be deleted, or are gone: there is room for others then. What else happens to
// Machines shows in the status of their MachineSet.
func leaves() predicate.Predicate {
	return predicate.Or(watch.Deleted(), watch.Updated(func(before, after *clusterv1.Machine) bool {
		return before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero()
	}))
}
