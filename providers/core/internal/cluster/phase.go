package cluster

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// phaseOf returns the phase of a Cluster; later rules take precedence.
func phaseOf(cluster *clusterv1.Cluster) clusterv1.ClusterPhase {
	phase := clusterv1.ClusterPhasePending
	if cluster.Spec.InfrastructureRef != nil || cluster.Spec.ControlPlaneRef != nil {
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

// phase sets the phase and emits an event when it changes.
func phase(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	if !started(cluster) {
		return step.Done(), nil
	}
	phase := phaseOf(cluster)
	cluster.Status.SetTypedPhase(phase)
	switch {
	case phase == s.before:
	case phase == clusterv1.ClusterPhaseFailed:
		step.Warning(ctx, string(phase), "Cluster %s is %s: %s", cluster.Name, phase, failureOf(cluster))
	default:
		step.Transition(ctx, string(phase), "Cluster %s is %s", cluster.Name, phase)
	}
	return step.Done(), nil
}

func failureOf(cluster *clusterv1.Cluster) string {
	if cluster.Status.FailureMessage != nil {
		return *cluster.Status.FailureMessage
	}
	return "unknown"
}
