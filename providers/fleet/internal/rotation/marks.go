package rotation

import (
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// marks are the steps of a rotation as operation.Marks: they have more than those of other operations.
type marks struct {
	*fleetv1.CertificateAuthorityRotation
}

// Find implements operation.Marks.
func (m marks) Find(name string) *fleetv1.OperationStep {
	if found := m.Step(name); found != nil {
		return &found.OperationStep
	}
	return nil
}

// Add implements operation.Marks.
func (m marks) Add(mark fleetv1.OperationStep) {
	m.Status.Steps = append(m.Status.Steps, fleetv1.RotationStep{OperationStep: mark})
}

// Current implements operation.Marks.
func (m marks) Current() *fleetv1.OperationStep {
	for i := range m.Status.Steps {
		if mark := &m.Status.Steps[i].OperationStep; mark.CompletionTime == nil {
			return mark
		}
	}
	return nil
}
