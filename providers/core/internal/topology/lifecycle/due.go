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
	AfterControlPlaneUpgrade     Hook = "AfterControlPlaneUpgrade"
	AfterClusterUpgrade          Hook = "AfterClusterUpgrade"
	BeforeClusterDelete          Hook = "BeforeClusterDelete"
)

// Call is a hook that is due.
type Call struct {
	Hook Hook
	// From is the current version of the control plane, for BeforeClusterUpgrade.
	From string
	// To is the version of the topology, for all hooks of upgrades.
	To string
}

// BeforeCreate returns a call if no object of the Cluster's topology may have been created yet.
func BeforeCreate(cluster *clusterv1.Cluster) (Call, bool) {
	return Call{Hook: BeforeClusterCreate}, !cluster.Spec.InfrastructureRef.IsDefined() && !cluster.Spec.ControlPlaneRef.IsDefined()
}

// BeforeUpgrade returns a call if a plan starts the upgrade of the control plane.
func BeforeUpgrade(in upgrade.Input, plan upgrade.Plan) (Call, bool) {
	current := in.ControlPlane
	return Call{Hook: BeforeClusterUpgrade, From: current.Version, To: in.Version}, current.Exists && plan.ControlPlane != current.Version
}

// BeforeWorkers returns a call if the control plane has been upgraded, and the workers may be next.
func BeforeWorkers(cluster *clusterv1.Cluster, in upgrade.Input) (Call, bool) {
	current := in.ControlPlane
	return Call{Hook: AfterControlPlaneUpgrade, To: in.Version},
		IsPending(cluster, AfterControlPlaneUpgrade) && current.Exists && current.Version == in.Version &&
			!current.Provisioning && !current.Upgrading
}

// After returns the calls for what has been completed. They hold nothing.
func After(cluster *clusterv1.Cluster, plan upgrade.Plan) []Call {
	var due []Call
	if IsPending(cluster, AfterControlPlaneInitialized) && condition.IsTrue(cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) {
		due = append(due, Call{Hook: AfterControlPlaneInitialized})
	}
	if IsPending(cluster, AfterClusterUpgrade) && !IsPending(cluster, AfterControlPlaneUpgrade) && plan.Complete() {
		due = append(due, Call{Hook: AfterClusterUpgrade, To: plan.Version})
	}
	return due
}
