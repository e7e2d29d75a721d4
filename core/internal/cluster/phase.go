package cluster

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/step"
)

// phaseOf is the phase that a Cluster is in; later rules win.
func phaseOf(cluster *clusterv1.Cluster) clusterv1.ClusterPhase {
	phase := clusterv1.ClusterPhasePending
	if cluster.Spec.InfrastructureRef != nil {
		phase = clusterv1.ClusterPhaseProvisioning
	}
	if cluster.Status.InfrastructureReady && cluster.Spec.ControlPlaneEndpoint.IsValid() {
		phase = clusterv1.ClusterPhaseProvisioned
	}
	if cluster.Status.FailureReason != nil || cluster.Status.FailureMessage != nil {
		phase = clusterv1.ClusterPhaseFailed
	}
	if !cluster.DeletionTimestamp.IsZero() {
		phase = clusterv1.ClusterPhaseDeleting
	}
	return phase
}

// setPhase records the phase and announces a change.
func setPhase(ctx context.Context, cluster *clusterv1.Cluster, before clusterv1.ClusterPhase) {
	phase := phaseOf(cluster)
	cluster.Status.SetTypedPhase(phase)
	switch {
	case phase == before:
	case phase == clusterv1.ClusterPhaseFailed:
		step.Warning(ctx, string(phase), "Cluster %s is %s: %s", cluster.Name, phase, failureOf(cluster))
	default:
		step.Transition(ctx, string(phase), "Cluster %s is %s", cluster.Name, phase)
	}
}

func failureOf(cluster *clusterv1.Cluster) string {
	if cluster.Status.FailureMessage != nil {
		return *cluster.Status.FailureMessage
	}
	return "unknown"
}
