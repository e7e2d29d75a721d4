package v1beta1

// Conditions and reasons that several kinds share.
const (
	// ReadyCondition sums up the other conditions of an object.
	ReadyCondition ConditionType = "Ready"

	// InfrastructureReadyCondition is, on a Cluster, Machine or MachinePool, the Ready condition of its infrastructure
	// object.
	InfrastructureReadyCondition ConditionType = "InfrastructureReady"

	// BootstrapReadyCondition is, on a Machine or MachinePool, the Ready condition of its bootstrap configuration.
	BootstrapReadyCondition ConditionType = "BootstrapReady"

	// DeletingReason says that what the condition is about is being deleted.
	DeletingReason = "Deleting"

	// DeletionFailedReason says that deleting what the condition is about failed.
	DeletionFailedReason = "DeletionFailed"

	// DeletedReason says that what the condition is about is gone.
	DeletedReason = "Deleted"

	// IncorrectExternalRefReason says that a reference names an object that does not exist or cannot be used.
	IncorrectExternalRefReason = "IncorrectExternalRef"

	// WaitingForInfrastructureFallbackReason stands in while an infrastructure object is not ready and gives no reason.
	WaitingForInfrastructureFallbackReason = "WaitingForInfrastructure"

	// WaitingForDataSecretFallbackReason stands in while a bootstrap configuration is not ready and gives no reason.
	WaitingForDataSecretFallbackReason = "WaitingForDataSecret"
)

// Conditions and reasons of Clusters.
const (
	// ControlPlaneReadyCondition is the Ready condition of the control plane object.
	ControlPlaneReadyCondition ConditionType = "ControlPlaneReady"

	// WaitingForControlPlaneFallbackReason stands in while a control plane object is not ready and gives no reason.
	WaitingForControlPlaneFallbackReason = "WaitingForControlPlane"

	// WaitingForControlPlaneAvailableReason says that a machine waits for the control plane to serve requests.
	WaitingForControlPlaneAvailableReason = "WaitingForControlPlaneAvailable"

	// ControlPlaneInitializedCondition is True once the API server has first served a request; it stays True.
	ControlPlaneInitializedCondition ConditionType = "ControlPlaneInitialized"

	// MissingNodeRefReason says that no control plane Machine has a Node yet.
	MissingNodeRefReason = "MissingNodeRef"

	// WaitingForControlPlaneProviderInitializedReason says that the control plane object is not initialized yet.
	WaitingForControlPlaneProviderInitializedReason = "WaitingForControlPlaneProviderInitialized"

	// TopologyReconciledCondition is True when all objects of the Cluster are as its topology asks.
	TopologyReconciledCondition ConditionType = "TopologyReconciled"

	// TopologyReconcileFailedReason says that the topology could not be computed or applied.
	TopologyReconcileFailedReason = "TopologyReconcileFailed"

	// TopologyReconciledClusterClassNotReconciledReason says that the class itself has not been reconciled yet.
	TopologyReconciledClusterClassNotReconciledReason = "ClusterClassNotReconciled"

	// TopologyReconciledHookBlockingReason says that an extension asked to wait.
	TopologyReconciledHookBlockingReason = "LifecycleHookBlocking"

	// TopologyReconciledControlPlaneUpgradePendingReason says that the control plane has not got the new version yet.
	TopologyReconciledControlPlaneUpgradePendingReason = "ControlPlaneUpgradePending"

	// TopologyReconciledMachineDeploymentsCreatePendingReason says that MachineDeployments wait to be created.
	TopologyReconciledMachineDeploymentsCreatePendingReason = "MachineDeploymentsCreatePending"

	// TopologyReconciledMachineDeploymentsUpgradePendingReason says that MachineDeployments wait for the new version.
	TopologyReconciledMachineDeploymentsUpgradePendingReason = "MachineDeploymentsUpgradePending"

	// TopologyReconciledMachineDeploymentsUpgradeDeferredReason says that the user put off MachineDeployment upgrades.
	TopologyReconciledMachineDeploymentsUpgradeDeferredReason = "MachineDeploymentsUpgradeDeferred"

	// TopologyReconciledMachinePoolsCreatePendingReason says that MachinePools wait to be created.
	TopologyReconciledMachinePoolsCreatePendingReason = "MachinePoolsCreatePending"

	// TopologyReconciledMachinePoolsUpgradePendingReason says that MachinePools wait for the new version.
	TopologyReconciledMachinePoolsUpgradePendingReason = "MachinePoolsUpgradePending"

	// TopologyReconciledMachinePoolsUpgradeDeferredReason says that the user put off MachinePool upgrades.
	TopologyReconciledMachinePoolsUpgradeDeferredReason = "MachinePoolsUpgradeDeferred"
)

// Conditions and reasons of ClusterClasses.
const (
	// ClusterClassVariablesReconciledCondition is True when status.variables holds the variables of the current spec.
	ClusterClassVariablesReconciledCondition ConditionType = "VariablesReconciled"

	// VariableDiscoveryFailedReason says that an extension could not be asked for its variables.
	VariableDiscoveryFailedReason = "VariableDiscoveryFailed"

	// ClusterClassRefVersionsUpToDateCondition is True when all references use the newest API version of the contract.
	ClusterClassRefVersionsUpToDateCondition ConditionType = "RefVersionsUpToDate"

	// ClusterClassOutdatedRefVersionsReason says that references use an older API version.
	ClusterClassOutdatedRefVersionsReason = "OutdatedRefVersions"

	// ClusterClassProviderNotInstalledReason says that kinds of templates have no CustomResourceDefinition yet.
	ClusterClassProviderNotInstalledReason = "ProviderNotInstalled"
)

// Conditions and reasons of Machines.
const (
	// MachineNodeHealthyCondition is True when the Node is ready and under no pressure.
	MachineNodeHealthyCondition ConditionType = "NodeHealthy"

	// WaitingForNodeRefReason says that the Machine has no provider ID to find its Node by.
	WaitingForNodeRefReason = "WaitingForNodeRef"

	// NodeProvisioningReason says that there is no Node yet.
	NodeProvisioningReason = "NodeProvisioning"

	// NodeNotFoundReason says that the Node is gone.
	NodeNotFoundReason = "NodeNotFound"

	// NodeInspectionFailedReason says that the Node could not be read.
	NodeInspectionFailedReason = "NodeInspectionFailed"

	// NodeConditionsFailedReason says that conditions of the Node are bad or not known.
	NodeConditionsFailedReason = "NodeConditionsFailed"

	// PreDrainDeleteHookSucceededCondition is True when no pre-drain hook holds up the deletion.
	PreDrainDeleteHookSucceededCondition ConditionType = "PreDrainDeleteHookSucceeded"

	// PreTerminateDeleteHookSucceededCondition is True when no pre-terminate hook holds up the deletion.
	PreTerminateDeleteHookSucceededCondition ConditionType = "PreTerminateDeleteHookSucceeded"

	// WaitingExternalHookReason says that the owner of a hook has not removed its annotation yet.
	WaitingExternalHookReason = "WaitingExternalHook"

	// DrainingSucceededCondition is True when the Node has been drained before deletion.
	DrainingSucceededCondition ConditionType = "DrainingSucceeded"

	// DrainingReason says that the Node is being drained.
	DrainingReason = "Draining"

	// DrainingFailedReason says that draining the Node failed and is tried again.
	DrainingFailedReason = "DrainingFailed"

	// VolumeDetachSucceededCondition is True when all volumes have been detached from the Node before deletion.
	VolumeDetachSucceededCondition ConditionType = "VolumeDetachSucceeded"

	// WaitingForVolumeDetachReason says that volumes are still attached.
	WaitingForVolumeDetachReason = "WaitingForVolumeDetach"

	// MachineHealthCheckSucceededCondition is False when a health check found the Machine unhealthy.
	MachineHealthCheckSucceededCondition ConditionType = "HealthCheckSucceeded"

	// HasRemediateMachineAnnotationReason says that the user asked for remediation by annotation.
	HasRemediateMachineAnnotationReason = "HasRemediateMachineAnnotation"

	// MachineHasFailureReason says that the Machine has a failure reason or message.
	MachineHasFailureReason = "MachineHasFailure"

	// NodeStartupTimeoutReason says that the Machine got no Node in time.
	NodeStartupTimeoutReason = "NodeStartupTimeout"

	// UnhealthyNodeConditionReason says that a Node condition was bad for too long.
	UnhealthyNodeConditionReason = "UnhealthyNode"

	// MachineOwnerRemediatedCondition is False while the owner is to replace an unhealthy Machine, True once it has
	// begun to.
	MachineOwnerRemediatedCondition ConditionType = "OwnerRemediated"

	// WaitingForRemediationReason says that the owner has not acted yet.
	WaitingForRemediationReason = "WaitingForRemediation"

	// RemediationInProgressReason says that the owner is replacing the Machine.
	RemediationInProgressReason = "RemediationInProgress"

	// RemediationFailedReason says that the owner could not replace the Machine.
	RemediationFailedReason = "RemediationFailed"

	// ExternalRemediationTemplateAvailableCondition is False when the template of remediation requests is missing.
	ExternalRemediationTemplateAvailableCondition ConditionType = "ExternalRemediationTemplateAvailable"

	// ExternalRemediationTemplateNotFoundReason says that the template does not exist.
	ExternalRemediationTemplateNotFoundReason = "ExternalRemediationTemplateNotFound"

	// ExternalRemediationRequestAvailableCondition is False when a remediation request could not be made.
	ExternalRemediationRequestAvailableCondition ConditionType = "ExternalRemediationRequestAvailable"

	// ExternalRemediationRequestCreationFailedReason says that creating the request failed.
	ExternalRemediationRequestCreationFailedReason = "ExternalRemediationRequestCreationFailed"
)

// Conditions and reasons of MachineHealthChecks.
const (
	// RemediationAllowedCondition is False while too many machines are unhealthy at once.
	RemediationAllowedCondition ConditionType = "RemediationAllowed"

	// TooManyUnhealthyReason says that the limit of the health check is passed.
	TooManyUnhealthyReason = "TooManyUnhealthy"
)

// Conditions and reasons of MachineSets, some also of control planes.
const (
	// MachinesCreatedCondition is True when all machines have been created, whether or not they work yet.
	MachinesCreatedCondition ConditionType = "MachinesCreated"

	// PreflightCheckFailedReason says that a preflight check keeps machines from being made.
	PreflightCheckFailedReason = "PreflightCheckFailed"

	// BootstrapTemplateCloningFailedReason says that a bootstrap configuration could not be made.
	BootstrapTemplateCloningFailedReason = "BootstrapTemplateCloningFailed"

	// InfrastructureTemplateCloningFailedReason says that an infrastructure object could not be made.
	InfrastructureTemplateCloningFailedReason = "InfrastructureTemplateCloningFailed"

	// MachineCreationFailedReason says that a Machine could not be made.
	MachineCreationFailedReason = "MachineCreationFailed"

	// MachinesReadyCondition aggregates the Ready conditions of the machines.
	MachinesReadyCondition ConditionType = "MachinesReady"

	// ResizedCondition is True when there are as many machines as asked for.
	ResizedCondition ConditionType = "Resized"

	// ScalingUpReason says that machines are being added.
	ScalingUpReason = "ScalingUp"

	// ScalingDownReason says that machines are being removed.
	ScalingDownReason = "ScalingDown"
)

// Conditions and reasons of MachineDeployments.
const (
	// MachineDeploymentAvailableCondition is True when at least replicas less maxUnavailable machines are available.
	MachineDeploymentAvailableCondition ConditionType = "Available"

	// WaitingForAvailableMachinesReason says that too few machines are available.
	WaitingForAvailableMachinesReason = "WaitingForAvailableMachines"

	// MachineSetReadyCondition is the Ready condition of the newest MachineSet.
	MachineSetReadyCondition ConditionType = "MachineSetReady"

	// WaitingForMachineSetFallbackReason stands in while there is no newest MachineSet, or it gives no reason.
	WaitingForMachineSetFallbackReason = "WaitingForMachineSet"
)

// Conditions and reasons of MachinePools.
const (
	// ReplicasReadyCondition is True when as many machines are ready as asked for.
	ReplicasReadyCondition ConditionType = "ReplicasReady"

	// WaitingForReplicasReadyReason says that machines are still missing.
	WaitingForReplicasReadyReason = "WaitingForReplicasReady"
)
