package cluster

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// phaseOf returns the phase of a Cluster; later rules take precedence.
func phaseOf(cluster *clusterv1.Cluster) clusterv1.ClusterPhase {
	phase := clusterv1.ClusterPhasePending
	if cluster.Spec.InfrastructureRef.IsDefined() || cluster.Spec.ControlPlaneRef.IsDefined() {
		phase = clusterv1.ClusterPhaseProvisioning
	}
	if ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false) && cluster.Spec.ControlPlaneEndpoint.IsValid() {
		phase = clusterv1.ClusterPhaseProvisioned
	}
	if failed(cluster.GetV1Beta1Status()) {
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
	return ptr.Deref(cluster.GetV1Beta1Status().FailureMessage, "unknown")
}
