package machinedeployment

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/children"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// fieldManager is the field manager of the MachineSets that this controller applies.
const fieldManager = "capi-machinedeployment"

// Options configure the controller.
type Options struct {
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Recent is shared by all controllers of the manager. If nil, every confirmation reads from the API server.
	Recent *step.Recent
	// Updater calls the extensions that update Machines in place. If nil, all changes are rolled out with new Machines.
	Updater inplace.Caller
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := newController(step.ClientsOf(mgr, "machinedeployment-controller", o.Filter))
	c.Recent, c.updater = o.Recent, o.Updater
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	c.guard = children.NewGuard(mgr.GetClient(), machineDeploymentKind)
	return step.Add(ctx, mgr, c.Clients, declared)
}

func newController(clients step.Clients) *Controller {
	return &Controller{
		Clients:  clients,
		external: external.Reader{Client: clients.Client, Versions: contract.APIVersions{Reader: clients.Client}},
		sets:     serverSide{ssa.NewApplier(clients.Client, ssa.NewSchemas(clients.Client, clients.Live), fieldManager)},
		answers:  newAnswers(),
	}
}

// declared returns the declaration of the controller. If a MachineDeployment has no finalizer, the garbage collector deletes the
// MachineSets, in the foreground if requested.
func (c *Controller) declared() step.Controller[*clusterv1.MachineDeployment, *scope] {
	return step.Controller[*clusterv1.MachineDeployment, *scope]{
		Name: "machinedeployment",
		New:  func() *clusterv1.MachineDeployment { return &clusterv1.MachineDeployment{} },
		Selects: func(md *clusterv1.MachineDeployment) bool {
			return children.Selects(md, clusterv1.MachineDeploymentFinalizer)
		},
		Watches: []step.Watch{
			step.Owned(&clusterv1.MachineSet{}),
			step.Mapped(&clusterv1.MachineSet{}, c.ofOrphan, watch.Orphaned()),
			step.Mapped(&clusterv1.Machine{}, ofMachine, predicate.Or(machineChanges(), machineMoved())),
			step.Mapped(&clusterv1.Cluster{}, watch.Labeled(c.Client, &clusterv1.MachineDeploymentList{}), watch.Cluster(watch.Paused)),
		},
		Paused: ownership.PausedByClusterName(c.Client, func(md *clusterv1.MachineDeployment) string { return md.Spec.ClusterName }),
		Scope:  c.scope,
		Steps: []step.Step[*scope]{
			step.Do("check", c.check),
			step.Do("adopt", c.adopt),
			step.Do("collect", c.collect),
			step.Do("choose", c.choose),
			step.Do("ask", c.ask),
			step.Do("plan", c.plan),
			step.Do("confirm", c.confirm),
			step.Do("write", c.write),
			step.Do("clean", c.clean),
		},
		Deletion: []step.Step[*scope]{
			step.Do("left", c.left),
			step.Do("delete-sets", c.deleteSets),
			step.Do("finish", finish),
		},
		Report:     []step.Step[*scope]{step.Do("status", status)},
		Reports:    c.reports,
		Settle:     step.Settle{For: settle, Conditions: []string{clusterv1.AvailableCondition}, First: true},
		ErrorEvent: "ReconcileError",
		Conditions: conditions(),
		Observed:   func(md *clusterv1.MachineDeployment, g int64) { md.Status.ObservedGeneration = g },
		Progress:   progress(),
	}
}

// settle is how long reports that users wait for are held back: Machines often change together.
const settle = time.Second

// conditions declares the conditions that a MachineDeployment's Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{clusterv1.MachineDeploymentAvailableV1Beta1Condition}}
}

// progress delays the first write of status until a Machine is ready.
func progress() *step.Progress {
	return &step.Progress{First: []string{"phase", "selector", "replicas", "updatedReplicas", "unavailableReplicas", "versions"}}
}
