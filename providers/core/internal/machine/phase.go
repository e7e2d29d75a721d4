package machine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// phaseOf returns the phase of a Machine; later rules take precedence. updating is true if it is being updated in place.
func phaseOf(m *clusterv1.Machine, updating bool) clusterv1.MachinePhase {
	phase := clusterv1.MachinePhasePending
	provisioned := ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false)
	if ptr.Deref(m.Status.Initialization.BootstrapDataSecretCreated, false) && !provisioned {
		phase = clusterv1.MachinePhaseProvisioning
	}
	if m.Spec.ProviderID != "" {
		phase = clusterv1.MachinePhaseProvisioned
	}
	if m.Status.NodeRef.IsDefined() && provisioned {
		phase = clusterv1.MachinePhaseRunning
	}
	if updating {
		phase = clusterv1.MachinePhaseUpdating
	}
	if older := m.GetV1Beta1Status(); older.FailureReason != nil || older.FailureMessage != nil {
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
	phase := phaseOf(m, s.found.update != nil)
	if m.Status.GetTypedPhase() == phase && m.Status.Phase != "" {
		return step.Done(), nil
	}
	m.Status.SetTypedPhase(phase)
	m.Status.LastUpdated = metav1.NewTime(c.Clock.Now().UTC())
	return step.Done(), nil
}
