package snapshot

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// PendingVersion returns the version of the topology that the control plane is about to get; empty if there is none. A Machine that was
// created now would have to be replaced at once.
//
// Once the topology controller has seen the version, it either has upgraded the control plane, has begun with another step, or reports what
// it waits for: hooks, workers, or this control plane. That may last for days, and Machines that fail meanwhile must be replaced. It also
// waits until this control plane has all replicas, and so the control plane must not wait for it in turn. Definitions of v1.7 do not have
// the condition: there, nothing is known to be pending.
func (cp *ControlPlane) PendingVersion() string {
	topology, current := &cp.Cluster.Spec.Topology, cp.KCP.Spec.Version
	if !topology.IsDefined() || topology.Version == current ||
		cp.Cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation] == current {
		return ""
	}
	seen := report.Get(cp.Cluster, clusterv1.ClusterTopologyReconciledCondition)
	if seen == nil || seen.ObservedGeneration >= cp.Cluster.Generation {
		return ""
	}
	return topology.Version
}
