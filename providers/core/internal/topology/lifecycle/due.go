package lifecycle

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Hook is the name of a lifecycle hook.
type Hook string

// The lifecycle hooks.
const (
	BeforeClusterCreate          Hook = "BeforeClusterCreate"
	AfterControlPlaneInitialized Hook = "AfterControlPlaneInitialized"
	BeforeClusterUpgrade         Hook = "BeforeClusterUpgrade"
	BeforeControlPlaneUpgrade    Hook = "BeforeControlPlaneUpgrade"
	AfterControlPlaneUpgrade     Hook = "AfterControlPlaneUpgrade"
	BeforeWorkersUpgrade         Hook = "BeforeWorkersUpgrade"
	AfterWorkersUpgrade          Hook = "AfterWorkersUpgrade"
	AfterClusterUpgrade          Hook = "AfterClusterUpgrade"
	BeforeClusterDelete          Hook = "BeforeClusterDelete"
)

// Call is a hook that is due.
type Call struct {
	Hook Hook
	// From is the current version, for hooks that come before an upgrade: of the control plane, or the lowest of the workers.
	From string
	// To is the version after the upgrade or its step, for all hooks of upgrades.
	To string
	// Remaining are the versions that are still to be reached, for all hooks of upgrades but AfterClusterUpgrade.
	Remaining upgrade.Chain
}

// BeforeCreate returns a call if no object of the Cluster's topology may have been created yet.
func BeforeCreate(cluster *clusterv1.Cluster) (Call, bool) {
	return Call{Hook: BeforeClusterCreate}, !cluster.Spec.InfrastructureRef.IsDefined() && !cluster.Spec.ControlPlaneRef.IsDefined()
}

// BeforeUpgrade returns a call if a plan starts an upgrade. A pending AfterClusterUpgrade, or a step, records that it has started already.
func BeforeUpgrade(cluster *clusterv1.Cluster, plan upgrade.Plan) (Call, bool) {
	return Call{Hook: BeforeClusterUpgrade, From: plan.Ends.ControlPlane, To: plan.Version, Remaining: plan.Remaining},
		plan.Starts() && !IsPending(cluster, AfterClusterUpgrade) && Step(cluster) == ""
}

// BeforeControlPlane returns a call if a plan starts a step of the upgrade of the control plane.
func BeforeControlPlane(plan upgrade.Plan) (Call, bool) {
	return Call{Hook: BeforeControlPlaneUpgrade, From: plan.Ends.ControlPlane, To: plan.ControlPlane, Remaining: plan.Remaining}, plan.Starts()
}

// AfterControlPlane returns a call if the control plane has the version of its step.
func AfterControlPlane(cluster *clusterv1.Cluster, in upgrade.Input, plan upgrade.Plan) (Call, bool) {
	current, step := in.ControlPlane, in.Version
	if in.Step != "" {
		step = in.Step
	}
	return Call{Hook: AfterControlPlaneUpgrade, To: current.Version, Remaining: plan.Remaining},
		IsPending(cluster, AfterControlPlaneUpgrade) && current.Exists && current.Version == step &&
			!current.Provisioning && !current.Upgrading
}

// BeforeWorkers returns a call if a plan is the first to give workers the version at which they stop. A pending AfterWorkersUpgrade
// records that others have got it already.
func BeforeWorkers(cluster *clusterv1.Cluster, plan upgrade.Plan) (Call, bool) {
	return Call{Hook: BeforeWorkersUpgrade, From: plan.Ends.Workers, To: plan.Ends.ControlPlane, Remaining: plan.Remaining},
		plan.WorkersStart() && !IsPending(cluster, AfterWorkersUpgrade)
}

// AfterWorkers returns a call if all workers have reached the version at which they stop.
func AfterWorkers(cluster *clusterv1.Cluster, plan upgrade.Plan) (Call, bool) {
	reached := plan.Ends.Workers
	if reached == "" {
		reached = plan.Ends.ControlPlane
	}
	return Call{Hook: AfterWorkersUpgrade, To: reached, Remaining: plan.Remaining},
		IsPending(cluster, AfterWorkersUpgrade) && plan.WorkersReached()
}

// Initialized returns a call if the control plane accepts requests. It holds nothing.
func Initialized(cluster *clusterv1.Cluster) (Call, bool) {
	return Call{Hook: AfterControlPlaneInitialized},
		IsPending(cluster, AfterControlPlaneInitialized) && condition.IsTrue(cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition)
}

// AfterUpgrade returns the calls at the end of an upgrade, in their order. Each of them holds those that follow, and the next upgrade.
func AfterUpgrade(cluster *clusterv1.Cluster, plan upgrade.Plan) []Call {
	if !plan.Complete() || IsPending(cluster, AfterControlPlaneUpgrade) {
		return nil
	}
	var due []Call
	if call, ok := AfterWorkers(cluster, plan); ok {
		due = append(due, call)
	}
	if IsPending(cluster, AfterClusterUpgrade) {
		due = append(due, Call{Hook: AfterClusterUpgrade, To: plan.Version})
	}
	return due
}
