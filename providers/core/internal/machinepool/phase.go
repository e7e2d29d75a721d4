package machinepool

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// phaseOf returns the phase of a MachinePool; later rules take precedence.
func phaseOf(p *clusterv1.MachinePool) clusterv1.MachinePoolPhase {
	phase := clusterv1.MachinePoolPhasePending
	done := p.Status.Initialization
	provisioned := ptr.Deref(done.InfrastructureProvisioned, false)
	if ptr.Deref(done.BootstrapDataSecretCreated, false) && !provisioned {
		phase = clusterv1.MachinePoolPhaseProvisioning
	}
	if len(p.Status.NodeRefs) > 0 {
		phase = clusterv1.MachinePoolPhaseProvisioned
	}
	if provisioned {
		phase = scalingPhase(p)
	}
	if failed(p.GetV1Beta1Status()) {
		phase = clusterv1.MachinePoolPhaseFailed
	}
	if !p.DeletionTimestamp.IsZero() {
		phase = clusterv1.MachinePoolPhaseDeleting
	}
	return phase
}

// scalingPhase returns the phase of a MachinePool whose infrastructure is ready.
func scalingPhase(p *clusterv1.MachinePool) clusterv1.MachinePoolPhase {
	switch ready := ptr.Deref(p.GetV1Beta1Status().ReadyReplicas, 0); {
	case ready == desired(p):
		return clusterv1.MachinePoolPhaseRunning
	case managedExternally(p):
		return clusterv1.MachinePoolPhaseScaling
	case ready < desired(p):
		return clusterv1.MachinePoolPhaseScalingUp
	}
	return clusterv1.MachinePoolPhaseScalingDown
}

// phase sets the phase, and the number of replicas: it is 0 until the infrastructure reports another one.
func phase(_ context.Context, s *scope) (step.Result, error) {
	s.pool.Status.Replicas = ptr.To(ptr.Deref(s.pool.Status.Replicas, 0))
	s.pool.Status.SetTypedPhase(phaseOf(s.pool))
	return step.Done(), nil
}
