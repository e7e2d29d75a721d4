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
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/providers/core/internal/machineset/tally"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

const (
	machineDeploymentKind = "MachineDeployment"
	machineSetKind        = "MachineSet"
	// fieldManager is the field manager of the MachineSets that this controller applies.
	fieldManager = "capi-machinedeployment"
	// visibilityTimeout is how long to wait, after each write, until the cache has it. Usually that takes milliseconds, and saves
	// the next reconcile a read from the API server.
	visibilityTimeout = 5 * time.Second
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Recent is shared by all controllers of the manager. If nil, every confirmation reads from the API server.
	Recent *step.Recent
}

// applier is the part of an ssa.Applier that the controller needs.
type applier interface {
	// differs reports whether apply would send a request.
	differs(ctx context.Context, live, desired *clusterv1.MachineSet) (bool, error)
	apply(ctx context.Context, live, desired *clusterv1.MachineSet) (*clusterv1.MachineSet, bool, error)
}

// Controller reconciles MachineDeployments.
type Controller struct {
	step.Outside
	external external.Reader
	sets     applier
	// visibilityTimeout is how long to wait, after each write, until the cache has it.
	visibilityTimeout time.Duration
}

// conditions declares the conditions that a MachineDeployment's Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.MachineDeploymentAvailableCondition}}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := newController(step.OutsideOf(mgr, "machinedeployment-controller", o.Filter))
	c.Recent = o.Recent
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Outside, declared)
}

func newController(outside step.Outside) *Controller {
	return &Controller{
		Outside:           outside,
		external:          external.Reader{Client: outside.Client, Versions: contract.APIVersions{Reader: outside.Client}},
		sets:              serverSide{ssa.NewApplier(outside.Client, ssa.NewSchemas(outside.Client, outside.Live), fieldManager)},
		visibilityTimeout: visibilityTimeout,
	}
}

// progress delays the first write of status until a Machine is ready.
func progress() *step.Progress {
	return &step.Progress{First: []string{"phase", "selector", "replicas", "updatedReplicas", "unavailableReplicas"}}
}

// declared returns the declaration of the controller. It has no steps for deletion: the garbage collector deletes the
// MachineSets, in the foreground if requested.
func (c *Controller) declared() step.Controller[*clusterv1.MachineDeployment, *scope] {
	return step.Controller[*clusterv1.MachineDeployment, *scope]{
		Name: "machinedeployment",
		New:  func() *clusterv1.MachineDeployment { return &clusterv1.MachineDeployment{} },
		Watches: []step.Watch{
			step.Owned(&clusterv1.MachineSet{}),
			step.Mapped(&clusterv1.MachineSet{}, c.ofOrphan, watch.Orphaned()),
			step.Mapped(&clusterv1.Machine{}, ofMachine, machineRemoved()),
			step.Mapped(&clusterv1.Cluster{}, watch.Labeled(c.Client, &clusterv1.MachineDeploymentList{}), watch.Cluster(watch.Paused)),
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

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	deployment *clusterv1.MachineDeployment
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// sets are the MachineSets that are not being deleted, oldest first. Set by collect, and updated by write.
	sets []*clusterv1.MachineSet
	// names are the names of all MachineSets of the Cluster, including those that are being deleted or have another controller.
	names map[string]bool
	// listed is whether sets has been set.
	listed bool
	// tallies count the Machines of each MachineSet, by its UID.
	tallies map[types.UID]*tally.Tally
	// pending is whether a MachineSet has to be created or updated.
	pending bool
	// current is the MachineSet of the deployment's template; nil if there is none.
	current *clusterv1.MachineSet
	// newIdentity is the identity of the current set if it has to be created.
	newIdentity identity
	// surge and unavailable are the resolved maxSurge and maxUnavailable; zero for OnDelete.
	surge, unavailable int32
	targets            rollout.Targets
}

// old returns the sets of previous templates, oldest first.
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

// check waits for the Cluster, and fails for an object that the webhook has not defaulted.
func (c *Controller) check(_ context.Context, s *scope) (step.Result, error) {
	md := s.deployment
	if md.Spec.Replicas == nil {
		return step.Done(), step.Terminal(fmt.Errorf("spec.replicas of MachineDeployment %s is not set: update the object, so that the webhook defaults it", md.Name))
	}
	if s.cluster == nil {
		return step.Wait("Cluster " + md.Spec.ClusterName + " (spec.clusterName) to exist"), nil
	}
	return step.Done(), nil
}

// ofOrphan maps a MachineSet without controller to the MachineDeployments whose selector it matches.
func (c *Controller) ofOrphan(ctx context.Context, obj client.Object) []reconcile.Request {
	set, ok := obj.(*clusterv1.MachineSet)
	if !ok {
		return nil
	}
	adopts := func(md *clusterv1.MachineDeployment) bool {
		selector, err := metav1.LabelSelectorAsSelector(&md.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(set.Labels))
	}
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachineDeploymentList{}, adopts, ownership.InCluster(set.Namespace, set.Spec.ClusterName))
}

// ofMachine maps a Machine to its MachineDeployment.
func ofMachine(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[clusterv1.MachineDeploymentNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
}

// machineRemoved selects Machines whose deletion starts or is complete: then there is room for others. All other changes of
// Machines reach the MachineDeployment through the status of their MachineSet.
func machineRemoved() predicate.Predicate {
	return predicate.Or(watch.Deleted(), watch.Updated(func(before, after *clusterv1.Machine) bool {
		return before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero()
	}))
}
