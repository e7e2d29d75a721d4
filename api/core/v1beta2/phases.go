package v1beta2

import "slices"

// ClusterPhase is the phase of a Cluster's lifecycle.
type ClusterPhase string

const (
	// ClusterPhasePending is the first phase: nothing has been provisioned yet.
	ClusterPhasePending ClusterPhase = "Pending"
	// ClusterPhaseProvisioning means that the infrastructure object exists and is being provisioned.
	ClusterPhaseProvisioning ClusterPhase = "Provisioning"
	// ClusterPhaseProvisioned means that the infrastructure is ready and the control plane endpoint is set.
	ClusterPhaseProvisioned ClusterPhase = "Provisioned"
	// ClusterPhaseDeleting means that the Cluster is being deleted.
	ClusterPhaseDeleting ClusterPhase = "Deleting"
	// ClusterPhaseFailed is a known value that is never set.
	ClusterPhaseFailed ClusterPhase = "Failed"
	// ClusterPhaseUnknown is used for all other values.
	ClusterPhaseUnknown ClusterPhase = "Unknown"
)

// SetTypedPhase sets the phase.
func (s *ClusterStatus) SetTypedPhase(p ClusterPhase) { s.Phase = string(p) }

// GetTypedPhase returns the phase, or ClusterPhaseUnknown for an unknown value.
func (s *ClusterStatus) GetTypedPhase() ClusterPhase {
	return oneOf(ClusterPhase(s.Phase), ClusterPhaseUnknown,
		ClusterPhasePending, ClusterPhaseProvisioning, ClusterPhaseProvisioned, ClusterPhaseDeleting,
		ClusterPhaseFailed)
}

// MachinePhase is the phase of a Machine's lifecycle.
type MachinePhase string

const (
	// MachinePhasePending is the first phase: the bootstrap data does not exist yet.
	MachinePhasePending MachinePhase = "Pending"
	// MachinePhaseProvisioning means that the bootstrap data exists and the infrastructure is not ready yet.
	MachinePhaseProvisioning MachinePhase = "Provisioning"
	// MachinePhaseProvisioned means that the host exists but its Node does not.
	MachinePhaseProvisioned MachinePhase = "Provisioned"
	// MachinePhaseRunning means that the Machine has become a Node.
	MachinePhaseRunning MachinePhase = "Running"
	// MachinePhaseUpdating means that the Machine is being updated in place.
	MachinePhaseUpdating MachinePhase = "Updating"
	// MachinePhaseDeleting means that the Machine is being deleted.
	MachinePhaseDeleting MachinePhase = "Deleting"
	// MachinePhaseDeleted is a known value that is never set.
	MachinePhaseDeleted MachinePhase = "Deleted"
	// MachinePhaseFailed means that status.deprecated.v1beta1 has a failure reason or message.
	MachinePhaseFailed MachinePhase = "Failed"
	// MachinePhaseUnknown is used for all other values.
	MachinePhaseUnknown MachinePhase = "Unknown"
)

// SetTypedPhase sets the phase.
func (s *MachineStatus) SetTypedPhase(p MachinePhase) { s.Phase = string(p) }

// GetTypedPhase returns the phase, or MachinePhaseUnknown for an unknown value.
func (s *MachineStatus) GetTypedPhase() MachinePhase {
	return oneOf(MachinePhase(s.Phase), MachinePhaseUnknown,
		MachinePhasePending, MachinePhaseProvisioning, MachinePhaseProvisioned, MachinePhaseRunning,
		MachinePhaseUpdating, MachinePhaseDeleting, MachinePhaseDeleted, MachinePhaseFailed)
}

// MachineDeploymentPhase is the phase of a MachineDeployment.
type MachineDeploymentPhase string

const (
	// MachineDeploymentPhaseScalingUp means that there are fewer machines than desired.
	MachineDeploymentPhaseScalingUp MachineDeploymentPhase = "ScalingUp"
	// MachineDeploymentPhaseScalingDown means that there are more machines than desired.
	MachineDeploymentPhaseScalingDown MachineDeploymentPhase = "ScalingDown"
	// MachineDeploymentPhaseRunning means that there are as many machines as desired.
	MachineDeploymentPhaseRunning MachineDeploymentPhase = "Running"
	// MachineDeploymentPhaseFailed is a known value that is never set.
	MachineDeploymentPhaseFailed MachineDeploymentPhase = "Failed"
	// MachineDeploymentPhaseUnknown is used for all other values.
	MachineDeploymentPhaseUnknown MachineDeploymentPhase = "Unknown"
)

// SetTypedPhase sets the phase.
func (s *MachineDeploymentStatus) SetTypedPhase(p MachineDeploymentPhase) { s.Phase = string(p) }

// GetTypedPhase returns the phase, or MachineDeploymentPhaseUnknown for a value that is not one.
func (s *MachineDeploymentStatus) GetTypedPhase() MachineDeploymentPhase {
	return oneOf(MachineDeploymentPhase(s.Phase), MachineDeploymentPhaseUnknown,
		MachineDeploymentPhaseScalingUp, MachineDeploymentPhaseScalingDown, MachineDeploymentPhaseRunning,
		MachineDeploymentPhaseFailed)
}

// MachinePoolPhase is the phase of a MachinePool's lifecycle.
type MachinePoolPhase string

const (
	// MachinePoolPhasePending is the first phase: the bootstrap data does not exist yet.
	MachinePoolPhasePending MachinePoolPhase = "Pending"
	// MachinePoolPhaseProvisioning means that the bootstrap data exists and the infrastructure is not ready yet.
	MachinePoolPhaseProvisioning MachinePoolPhase = "Provisioning"
	// MachinePoolPhaseProvisioned means that the pool has Nodes but its infrastructure is not ready.
	MachinePoolPhaseProvisioned MachinePoolPhase = "Provisioned"
	// MachinePoolPhaseRunning means that all machines are ready.
	MachinePoolPhaseRunning MachinePoolPhase = "Running"
	// MachinePoolPhaseScalingUp means that fewer machines are ready than desired.
	MachinePoolPhaseScalingUp MachinePoolPhase = "ScalingUp"
	// MachinePoolPhaseScalingDown means that more machines are ready than asked for.
	MachinePoolPhaseScalingDown MachinePoolPhase = "ScalingDown"
	// MachinePoolPhaseScaling means that ready and asked for differ while something else manages the replicas.
	MachinePoolPhaseScaling MachinePoolPhase = "Scaling"
	// MachinePoolPhaseDeleting means that the MachinePool is being deleted.
	MachinePoolPhaseDeleting MachinePoolPhase = "Deleting"
	// MachinePoolPhaseFailed is a known value that is never set.
	MachinePoolPhaseFailed MachinePoolPhase = "Failed"
	// MachinePoolPhaseUnknown is used for all other values.
	MachinePoolPhaseUnknown MachinePoolPhase = "Unknown"
)

// SetTypedPhase sets the phase.
func (s *MachinePoolStatus) SetTypedPhase(p MachinePoolPhase) { s.Phase = string(p) }

// GetTypedPhase returns the phase, or MachinePoolPhaseUnknown for a value that is not one.
func (s *MachinePoolStatus) GetTypedPhase() MachinePoolPhase {
	return oneOf(MachinePoolPhase(s.Phase), MachinePoolPhaseUnknown,
		MachinePoolPhasePending, MachinePoolPhaseProvisioning, MachinePoolPhaseProvisioned, MachinePoolPhaseRunning,
		MachinePoolPhaseScalingUp, MachinePoolPhaseScalingDown, MachinePoolPhaseScaling, MachinePoolPhaseDeleting,
		MachinePoolPhaseFailed)
}

func oneOf[T comparable](value, otherwise T, known ...T) T {
	if slices.Contains(known, value) {
		return value
	}
	return otherwise
}
