package machine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// phaseOf returns the phase of a Machine; later rules take precedence.
func phaseOf(m *clusterv1.Machine) clusterv1.MachinePhase {
	phase := clusterv1.MachinePhasePending
	if m.Status.BootstrapReady && !m.Status.InfrastructureReady {
		phase = clusterv1.MachinePhaseProvisioning
	}
	if m.Spec.ProviderID != nil {
		phase = clusterv1.MachinePhaseProvisioned
	}
	if m.Status.NodeRef != nil && m.Status.InfrastructureReady {
		phase = clusterv1.MachinePhaseRunning
	}
	if m.Status.FailureReason != nil || m.Status.FailureMessage != nil {
		phase = clusterv1.MachinePhaseFailed
	}
	if !m.DeletionTimestamp.IsZero() {
		phase = clusterv1.MachinePhaseDeleting
	}
	return phase
}

// phase sets the phase, and lastUpdated if the phase changed.
func (c *Controller) phase(_ context.Context, s *scope) (step.Result, error) {
	m := s.machine
	phase := phaseOf(m)
	if m.Status.GetTypedPhase() == phase && m.Status.Phase != "" {
		return step.Done(), nil
	}
	m.Status.SetTypedPhase(phase)
	now := metav1.NewTime(c.Clock.Now().UTC())
	m.Status.LastUpdated = &now
	return step.Done(), nil
}
