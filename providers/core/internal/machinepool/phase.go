package machinepool

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// phaseOf returns the phase of a MachinePool; later rules take precedence.
func phaseOf(p *clusterv1.MachinePool) clusterv1.MachinePoolPhase {
	phase := clusterv1.MachinePoolPhasePending
	if p.Status.BootstrapReady && !p.Status.InfrastructureReady {
		phase = clusterv1.MachinePoolPhaseProvisioning
	}
	if len(p.Status.NodeRefs) > 0 {
		phase = clusterv1.MachinePoolPhaseProvisioned
	}
	if p.Status.InfrastructureReady {
		phase = scalingPhase(p)
	}
	if p.Status.FailureReason != nil || p.Status.FailureMessage != nil {
		phase = clusterv1.MachinePoolPhaseFailed
	}
	if !p.DeletionTimestamp.IsZero() {
		phase = clusterv1.MachinePoolPhaseDeleting
	}
	return phase
}

// scalingPhase returns the phase of a MachinePool whose infrastructure is ready.
func scalingPhase(p *clusterv1.MachinePool) clusterv1.MachinePoolPhase {
	switch ready := p.Status.ReadyReplicas; {
	case ready == desired(p):
		return clusterv1.MachinePoolPhaseRunning
	case managedExternally(p):
		return clusterv1.MachinePoolPhaseScaling
	case ready < desired(p):
		return clusterv1.MachinePoolPhaseScalingUp
	}
	return clusterv1.MachinePoolPhaseScalingDown
}

// phase sets the phase.
func phase(_ context.Context, s *scope) (step.Result, error) {
	s.pool.Status.SetTypedPhase(phaseOf(s.pool))
	return step.Done(), nil
}
