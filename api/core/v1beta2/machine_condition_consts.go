package v1beta2

// Conditions and reasons of Machines, some also of Clusters and MachinePools.
const (
	// InfrastructureReadyCondition mirrors the condition Ready of an infrastructure object.
	InfrastructureReadyCondition = "InfrastructureReady"

	// MachineAvailableCondition is True when the Machine has been ready for minReadySeconds.
	MachineAvailableCondition = AvailableCondition
	// MachineWaitingForMinReadySecondsReason means that the Machine is ready, but not yet for minReadySeconds.
	MachineWaitingForMinReadySecondsReason = "WaitingForMinReadySeconds"

	// MachineReadyCondition summarizes the other conditions of a Machine and its readiness gates.
	MachineReadyCondition = ReadyCondition

	// MachineUpToDateCondition is True when the Machine matches the specification of its owner. Machines without an owner do not
	// have it.
	MachineUpToDateCondition = "UpToDate"
	// MachineUpToDateUpdatingReason means that the Machine has been changed in place, and its Node has not been updated yet.
	MachineUpToDateUpdatingReason = "Updating"

	// MachineBootstrapConfigReadyCondition mirrors the condition Ready of the bootstrap configuration.
	MachineBootstrapConfigReadyCondition = "BootstrapConfigReady"
	// MachineBootstrapDataSecretProvidedReason means that the user provided the name of the Secret with the bootstrap data.
	MachineBootstrapDataSecretProvidedReason = "DataSecretProvided"

	// MachineInfrastructureReadyCondition mirrors the condition Ready of the infrastructure object.
	MachineInfrastructureReadyCondition = InfrastructureReadyCondition

	// MachineNodeReadyCondition mirrors the condition Ready of the Node.
	MachineNodeReadyCondition = "NodeReady"
	// MachineNodeReadyReason means that the Node is ready.
	MachineNodeReadyReason = "NodeReady"
	// MachineNodeNotReadyReason means that the Node is not ready.
	MachineNodeNotReadyReason = "NodeNotReady"
	// MachineNodeReadyUnknownReason means that the Node does not report whether it is ready.
	MachineNodeReadyUnknownReason = "NodeReadyUnknown"

	// MachineNodeHealthyCondition is True when the Node is ready and has no pressure conditions.
	MachineNodeHealthyCondition = "NodeHealthy"
	// MachineNodeHealthyReason means that the Node is ready and has no pressure conditions.
	MachineNodeHealthyReason = "NodeHealthy"
	// MachineNodeNotHealthyReason means that the Node is not ready, or has a pressure condition.
	MachineNodeNotHealthyReason = "NodeNotHealthy"
	// MachineNodeHealthyUnknownReason means that the Node does not report all of these conditions.
	MachineNodeHealthyUnknownReason = "NodeHealthyUnknown"
	// MachineNodeDoesNotExistReason means that there is no Node yet.
	MachineNodeDoesNotExistReason = "NodeDoesNotExist"
	// MachineNodeDeletedReason means that the Node existed, and has been deleted.
	MachineNodeDeletedReason = "NodeDeleted"

	// MachineUpdatingCondition is True while the Machine is being updated in place.
	MachineUpdatingCondition = "Updating"
	// MachineNotUpdatingReason means that the Machine is not being updated in place.
	MachineNotUpdatingReason = "NotUpdating"
	// MachineInPlaceUpdatingReason means that an extension is updating the Machine.
	MachineInPlaceUpdatingReason = "InPlaceUpdating"
	// MachineInPlaceUpdateFailedReason means that the extension could not update the Machine.
	MachineInPlaceUpdateFailedReason = "InPlaceUpdateFailed"
)

// Conditions and reasons of Machines with a health check.
const (
	// MachineHealthCheckSucceededCondition is False when a health check found the Machine unhealthy.
	MachineHealthCheckSucceededCondition = "HealthCheckSucceeded"
	// MachineHealthCheckSucceededReason means that the Machine is healthy.
	MachineHealthCheckSucceededReason = "HealthCheckSucceeded"
	// MachineHealthCheckUnhealthyNodeReason means that a Node condition was unhealthy for too long.
	MachineHealthCheckUnhealthyNodeReason = "UnhealthyNode"
	// MachineHealthCheckUnhealthyMachineReason means that a Machine condition was unhealthy for too long.
	MachineHealthCheckUnhealthyMachineReason = "UnhealthyMachine"
	// MachineHealthCheckNodeStartupTimeoutReason means that the Machine did not get a Node in time.
	MachineHealthCheckNodeStartupTimeoutReason = "NodeStartupTimeout"
	// MachineHealthCheckNodeDeletedReason means that the Node has been deleted.
	MachineHealthCheckNodeDeletedReason = "NodeDeleted"
	// MachineHealthCheckHasRemediateAnnotationReason means that the user requested remediation by annotation.
	MachineHealthCheckHasRemediateAnnotationReason = "HasRemediateAnnotation"

	// MachineOwnerRemediatedCondition is False while the owner has to replace an unhealthy Machine.
	MachineOwnerRemediatedCondition = "OwnerRemediated"
	// MachineOwnerRemediatedWaitingForRemediationReason means that the owner has not acted yet.
	MachineOwnerRemediatedWaitingForRemediationReason = "WaitingForRemediation"
	// MachineOwnerRemediatedCannotBeRemediatedReason means that the owner is not going to replace the Machine.
	MachineOwnerRemediatedCannotBeRemediatedReason = "CannotBeRemediated"
	// MachineOwnerRemediatedRemediationDeferredReason means that the owner is going to replace the Machine later.
	MachineOwnerRemediatedRemediationDeferredReason = "RemediationDeferred"
	// MachineOwnerRemediatedMachineDeletingReason means that the Machine is being deleted, to be replaced.
	MachineOwnerRemediatedMachineDeletingReason = "MachineDeleting"

	// MachineExternallyRemediatedCondition is False while an external controller has to remediate an unhealthy Machine.
	MachineExternallyRemediatedCondition = "ExternallyRemediated"
	// MachineExternallyRemediatedWaitingForRemediationReason means that the external controller has not acted yet.
	MachineExternallyRemediatedWaitingForRemediationReason = "WaitingForRemediation"
	// MachineExternallyRemediatedRemediationTemplateNotFoundReason means that the template of remediation requests does not exist.
	MachineExternallyRemediatedRemediationTemplateNotFoundReason = "RemediationTemplateNotFound"
	// MachineExternallyRemediatedRemediationRequestCreationFailedReason means that the request could not be created.
	MachineExternallyRemediatedRemediationRequestCreationFailedReason = "RemediationRequestCreationFailed"
)

// Stages of deleting a Machine, in this order: the reasons of its condition Deleting.
const (
	// MachineDeletingWaitingForPreDrainHookReason means that a pre-drain hook blocks the deletion.
	MachineDeletingWaitingForPreDrainHookReason = "WaitingForPreDrainHook"
	// MachineDeletingDrainingNodeReason means that the Node is being drained.
	MachineDeletingDrainingNodeReason = "DrainingNode"
	// MachineDeletingWaitingForVolumeDetachReason means that volumes are still attached to the Node.
	MachineDeletingWaitingForVolumeDetachReason = "WaitingForVolumeDetach"
	// MachineDeletingWaitingForPreTerminateHookReason means that a pre-terminate hook blocks the deletion.
	MachineDeletingWaitingForPreTerminateHookReason = "WaitingForPreTerminateHook"
	// MachineDeletingWaitingForInfrastructureDeletionReason means that the infrastructure object is being deleted.
	MachineDeletingWaitingForInfrastructureDeletionReason = "WaitingForInfrastructureDeletion"
	// MachineDeletingWaitingForBootstrapDeletionReason means that the bootstrap configuration is being deleted.
	MachineDeletingWaitingForBootstrapDeletionReason = "WaitingForBootstrapDeletion"
	// MachineDeletingDeletingNodeReason means that the Node object is being deleted.
	MachineDeletingDeletingNodeReason = "DeletingNode"
)
