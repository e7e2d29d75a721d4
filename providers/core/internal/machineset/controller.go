package machineset

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/children"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Recent is shared by all controllers of the manager. If nil, every confirmation reads from the API server.
	Recent *step.Recent
	// Preflight enables preflight checks, which delay Machines until the control plane is stable and of a compatible version.
	Preflight bool
	// Checks are those that Preflight enables.
	Checks Checks
	// NamedAfterTemplates names new infrastructure machines after their template, as before v1.7, instead of their Machine.
	NamedAfterTemplates bool
	// InPlace is whether Machines may be updated in place.
	InPlace bool
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := newController(step.ClientsOf(mgr, "machineset-controller", o.Filter), o.Preflight)
	c.Recent, c.namedAfterTemplates, c.checks, c.inPlace = o.Recent, o.NamedAfterTemplates, o.Checks, o.InPlace
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	c.guard = children.NewGuard(mgr.GetClient(), machineSetKind)
	return step.Add(ctx, mgr, c.Clients, declared)
}

func newController(clients step.Clients, preflight bool) *Controller {
	return &Controller{
		Clients: clients, preflight: preflight, names: newNamesInUse(),
		applier:  ssa.NewApplier(clients.Client, ssa.NewSchemas(clients.Client, clients.Live), fieldManager),
		external: external.Reader{Client: clients.Client, Versions: contract.APIVersions{Reader: clients.Client}},
	}
}

// declared returns the declaration of the controller. If a MachineSet has no finalizer, the garbage collector deletes the Machines, in the
// foreground if requested.
func (c *Controller) declared() step.Controller[*clusterv1.MachineSet, *scope] {
	return step.Controller[*clusterv1.MachineSet, *scope]{
		Name:    "machineset",
		New:     func() *clusterv1.MachineSet { return &clusterv1.MachineSet{} },
		Selects: func(set *clusterv1.MachineSet) bool { return children.Selects(set, clusterv1.MachineSetFinalizer) },
		Watches: []step.Watch{
			step.Owned(&clusterv1.Machine{}),
			step.Mapped(&clusterv1.Machine{}, c.ofOrphan, watch.Orphaned()),
			step.Mapped(&clusterv1.Cluster{}, watch.Labeled(c.Client, &clusterv1.MachineSetList{}),
				watch.Cluster(watch.Paused, watch.ControlPlaneReady)),
			step.Mapped(&clusterv1.Cluster{}, c.spreadIn, watch.Cluster(watch.InfrastructureReady)),
		},
		Paused: ownership.PausedByClusterName(c.Client, func(set *clusterv1.MachineSet) string { return set.Spec.ClusterName }),
		Scope:  c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", exists),
			step.Do("adopt", c.adopt),
			step.Do("collect", c.collect),
			step.Do("confirm", c.confirm),
			step.Do("retire", c.retire),
			step.Do("sync", c.sync),
			step.Do("complete", c.complete),
			step.Do("update", c.update),
			step.Do("remediate", c.remediate),
			step.Do("scale", c.scale),
		},
		Deletion: []step.Step[*scope]{
			step.Do("left", c.left),
			step.Do("delete-machines", c.deleteMachines),
			step.Do("finish", finish),
		},
		Report: []step.Step[*scope]{
			step.Do("status", c.status),
			step.Do("problems", problems),
		},
		Reports:    c.reports,
		Settle:     step.Settle{For: settle, Conditions: []string{clusterv1.MachinesReadyCondition}, First: true},
		ErrorEvent: "ReconcileError",
		Conditions: conditions(),
		Observed:   func(set *clusterv1.MachineSet, g int64) { set.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
}

// settle is how long reports that users wait for are held back: Machines often change together.
const settle = time.Second

// conditions declares the conditions that a MachineSet's Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{
		clusterv1.MachinesCreatedV1Beta1Condition, clusterv1.ResizedV1Beta1Condition, clusterv1.MachinesReadyV1Beta1Condition,
	}}
}

// progress delays the first write of status until a Machine is ready. That is safe, because this controller and the
// MachineDeployment controller count Machines and do not rely on status.replicas.
func progress() *step.Progress {
	return &step.Progress{
		First:     []string{"selector", "replicas", "fullyLabeledReplicas", "versions"},
		FirstTrue: []clusterv1.ConditionType{clusterv1.MachinesCreatedV1Beta1Condition},
	}
}
