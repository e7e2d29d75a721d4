package v1beta2

// Conditions and reasons of several kinds.
const (
	// ReadyV1Beta1Condition summarizes the other conditions of an object.
	ReadyV1Beta1Condition ConditionType = "Ready"

	// InfrastructureReadyV1Beta1Condition is, on a Cluster, Machine or MachinePool, the Ready condition of its infrastructure
	// object.
	InfrastructureReadyV1Beta1Condition ConditionType = "InfrastructureReady"

	// BootstrapReadyV1Beta1Condition is, on a Machine or MachinePool, the Ready condition of its bootstrap configuration.
	BootstrapReadyV1Beta1Condition ConditionType = "BootstrapReady"

	// DeletingV1Beta1Reason means that the subject of the condition is being deleted.
	DeletingV1Beta1Reason = "Deleting"

	// DeletionFailedV1Beta1Reason means that deleting the subject of the condition failed.
	DeletionFailedV1Beta1Reason = "DeletionFailed"

	// DeletedV1Beta1Reason means that the subject of the condition is gone.
	DeletedV1Beta1Reason = "Deleted"

	// IncorrectExternalRefV1Beta1Reason means that a referenced object does not exist or is invalid.
	IncorrectExternalRefV1Beta1Reason = "IncorrectExternalRef"

	// WaitingForInfrastructureFallbackV1Beta1Reason is used while an infrastructure object is not ready and gives no reason.
	WaitingForInfrastructureFallbackV1Beta1Reason = "WaitingForInfrastructure"

	// WaitingForDataSecretFallbackV1Beta1Reason is used while a bootstrap configuration is not ready and gives no reason.
	WaitingForDataSecretFallbackV1Beta1Reason = "WaitingForDataSecret"
)

// Conditions and reasons of Clusters.
const (
	// ControlPlaneReadyV1Beta1Condition is the Ready condition of the control plane object.
	ControlPlaneReadyV1Beta1Condition ConditionType = "ControlPlaneReady"

	// WaitingForControlPlaneFallbackV1Beta1Reason is used while a control plane object is not ready and gives no reason.
	WaitingForControlPlaneFallbackV1Beta1Reason = "WaitingForControlPlane"

	// WaitingForControlPlaneAvailableV1Beta1Reason means that a machine waits for the control plane to serve requests.
	WaitingForControlPlaneAvailableV1Beta1Reason = "WaitingForControlPlaneAvailable"

	// ControlPlaneInitializedV1Beta1Condition is True once the API server has first served a request; it stays True.
	ControlPlaneInitializedV1Beta1Condition ConditionType = "ControlPlaneInitialized"

	// MissingNodeRefV1Beta1Reason means that no control plane Machine has a Node yet.
	MissingNodeRefV1Beta1Reason = "MissingNodeRef"

	// WaitingForControlPlaneProviderInitializedV1Beta1Reason means that the control plane object is not initialized yet.
	WaitingForControlPlaneProviderInitializedV1Beta1Reason = "WaitingForControlPlaneProviderInitialized"

	// BackupUpToDateV1Beta1Condition is ClusterBackupUpToDateCondition, with the same reasons. It is not part of Cluster API v1.7.
	BackupUpToDateV1Beta1Condition ConditionType = ClusterBackupUpToDateCondition

	// TopologyReconciledV1Beta1Condition is True when all objects of the Cluster match its topology.
	TopologyReconciledV1Beta1Condition ConditionType = "TopologyReconciled"

	// TopologyReconcileFailedV1Beta1Reason means that the topology could not be computed or applied.
	TopologyReconcileFailedV1Beta1Reason = "TopologyReconcileFailed"

	// TopologyReconciledClusterClassNotReconciledV1Beta1Reason means that the class itself has not been reconciled yet.
	TopologyReconciledClusterClassNotReconciledV1Beta1Reason = "ClusterClassNotReconciled"

	// TopologyReconciledHookBlockingV1Beta1Reason means that an extension requested to wait.
	TopologyReconciledHookBlockingV1Beta1Reason = "LifecycleHookBlocking"

	// TopologyReconciledControlPlaneUpgradePendingV1Beta1Reason means that the control plane does not have the new version yet.
	TopologyReconciledControlPlaneUpgradePendingV1Beta1Reason = "ControlPlaneUpgradePending"

	// TopologyReconciledMachineDeploymentsCreatePendingV1Beta1Reason means that MachineDeployments wait to be created.
	TopologyReconciledMachineDeploymentsCreatePendingV1Beta1Reason = "MachineDeploymentsCreatePending"

	// TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason means that MachineDeployments wait for the new version.
	TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason = "MachineDeploymentsUpgradePending"

	// TopologyReconciledMachineDeploymentsUpgradeDeferredV1Beta1Reason means that the user deferred MachineDeployment upgrades.
	TopologyReconciledMachineDeploymentsUpgradeDeferredV1Beta1Reason = "MachineDeploymentsUpgradeDeferred"

	// TopologyReconciledMachinePoolsCreatePendingV1Beta1Reason means that MachinePools wait to be created.
	TopologyReconciledMachinePoolsCreatePendingV1Beta1Reason = "MachinePoolsCreatePending"

	// TopologyReconciledMachinePoolsUpgradePendingV1Beta1Reason means that MachinePools wait for the new version.
	TopologyReconciledMachinePoolsUpgradePendingV1Beta1Reason = "MachinePoolsUpgradePending"

	// TopologyReconciledMachinePoolsUpgradeDeferredV1Beta1Reason means that the user deferred MachinePool upgrades.
	TopologyReconciledMachinePoolsUpgradeDeferredV1Beta1Reason = "MachinePoolsUpgradeDeferred"
)

// Conditions and reasons of ClusterClasses.
const (
	// ClusterClassVariablesReconciledV1Beta1Condition is True when status.variables holds the variables of the current spec.
	ClusterClassVariablesReconciledV1Beta1Condition ConditionType = "VariablesReconciled"

	// VariableDiscoveryFailedV1Beta1Reason means that the variables of an extension could not be discovered.
	VariableDiscoveryFailedV1Beta1Reason = "VariableDiscoveryFailed"

	// ClusterClassRefVersionsUpToDateV1Beta1Condition is True when all references use the newest API version of the contract.
	ClusterClassRefVersionsUpToDateV1Beta1Condition ConditionType = "RefVersionsUpToDate"

	// ClusterClassOutdatedRefVersionsV1Beta1Reason means that references use an older API version.
	ClusterClassOutdatedRefVersionsV1Beta1Reason = "OutdatedRefVersions"

	// ClusterClassProviderNotInstalledV1Beta1Reason means that kinds of templates have no CustomResourceDefinition yet.
	ClusterClassProviderNotInstalledV1Beta1Reason = "ProviderNotInstalled"
)

// Conditions and reasons of Machines.
const (
	// MachineNodeHealthyV1Beta1Condition is True when the Node is ready and has no pressure conditions.
	MachineNodeHealthyV1Beta1Condition ConditionType = "NodeHealthy"

	// WaitingForNodeRefV1Beta1Reason means that the Machine has no provider ID to find its Node by.
	WaitingForNodeRefV1Beta1Reason = "WaitingForNodeRef"

	// NodeProvisioningV1Beta1Reason means that there is no Node yet.
	NodeProvisioningV1Beta1Reason = "NodeProvisioning"

	// NodeNotFoundV1Beta1Reason means that the Node is gone.
	NodeNotFoundV1Beta1Reason = "NodeNotFound"

	// NodeInspectionFailedV1Beta1Reason means that the Node could not be read.
	NodeInspectionFailedV1Beta1Reason = "NodeInspectionFailed"

	// NodeConditionsFailedV1Beta1Reason means that conditions of the Node are unhealthy or unknown.
	NodeConditionsFailedV1Beta1Reason = "NodeConditionsFailed"

	// PreDrainDeleteHookSucceededV1Beta1Condition is True when no pre-drain hook blocks the deletion.
	PreDrainDeleteHookSucceededV1Beta1Condition ConditionType = "PreDrainDeleteHookSucceeded"

	// PreTerminateDeleteHookSucceededV1Beta1Condition is True when no pre-terminate hook blocks the deletion.
	PreTerminateDeleteHookSucceededV1Beta1Condition ConditionType = "PreTerminateDeleteHookSucceeded"

	// WaitingExternalHookV1Beta1Reason means that the owner of a hook has not removed its annotation yet.
	WaitingExternalHookV1Beta1Reason = "WaitingExternalHook"

	// DrainingSucceededV1Beta1Condition is True when the Node has been drained before deletion.
	DrainingSucceededV1Beta1Condition ConditionType = "DrainingSucceeded"

	// DrainingV1Beta1Reason means that the Node is being drained.
	DrainingV1Beta1Reason = "Draining"

	// DrainingFailedV1Beta1Reason means that draining the Node failed and is retried.
	DrainingFailedV1Beta1Reason = "DrainingFailed"

	// VolumeDetachSucceededV1Beta1Condition is True when all volumes have been detached from the Node before deletion.
	VolumeDetachSucceededV1Beta1Condition ConditionType = "VolumeDetachSucceeded"

	// WaitingForVolumeDetachV1Beta1Reason means that volumes are still attached.
	WaitingForVolumeDetachV1Beta1Reason = "WaitingForVolumeDetach"

	// MachineHealthCheckSucceededV1Beta1Condition is False when a health check found the Machine unhealthy.
	MachineHealthCheckSucceededV1Beta1Condition ConditionType = "HealthCheckSucceeded"

	// HasRemediateMachineAnnotationV1Beta1Reason means that the user requested remediation by annotation.
	HasRemediateMachineAnnotationV1Beta1Reason = "HasRemediateMachineAnnotation"

	// MachineHasFailureV1Beta1Reason means that the Machine has a failure reason or message.
	MachineHasFailureV1Beta1Reason = "MachineHasFailure"

	// NodeStartupTimeoutV1Beta1Reason means that the Machine did not get a Node in time.
	NodeStartupTimeoutV1Beta1Reason = "NodeStartupTimeout"

	// UnhealthyNodeConditionV1Beta1Reason means that a Node condition was unhealthy for too long.
	UnhealthyNodeConditionV1Beta1Reason = "UnhealthyNode"

	// UnhealthyMachineV1Beta1Reason means that a Machine condition was unhealthy for too long.
	UnhealthyMachineV1Beta1Reason = "UnhealthyMachine"

	// MachineOwnerRemediatedV1Beta1Condition is False while the owner has to replace an unhealthy Machine, True once it has
	// started.
	MachineOwnerRemediatedV1Beta1Condition ConditionType = "OwnerRemediated"

	// WaitingForRemediationV1Beta1Reason means that the owner has not acted yet.
	WaitingForRemediationV1Beta1Reason = "WaitingForRemediation"

	// RemediationInProgressV1Beta1Reason means that the owner is replacing the Machine.
	RemediationInProgressV1Beta1Reason = "RemediationInProgress"

	// RemediationFailedV1Beta1Reason means that the owner could not replace the Machine.
	RemediationFailedV1Beta1Reason = "RemediationFailed"

	// ExternalRemediationTemplateAvailableV1Beta1Condition is False when the template of remediation requests is missing.
	ExternalRemediationTemplateAvailableV1Beta1Condition ConditionType = "ExternalRemediationTemplateAvailable"

	// ExternalRemediationTemplateNotFoundV1Beta1Reason means that the template does not exist.
	ExternalRemediationTemplateNotFoundV1Beta1Reason = "ExternalRemediationTemplateNotFound"

	// ExternalRemediationRequestAvailableV1Beta1Condition is False when a remediation request could not be created.
	ExternalRemediationRequestAvailableV1Beta1Condition ConditionType = "ExternalRemediationRequestAvailable"

	// ExternalRemediationRequestCreationFailedV1Beta1Reason means that creating the request failed.
	ExternalRemediationRequestCreationFailedV1Beta1Reason = "ExternalRemediationRequestCreationFailed"
)

// Conditions and reasons of MachineHealthChecks.
const (
	// RemediationAllowedV1Beta1Condition is False while too many machines are unhealthy at once, or their Nodes are unknown.
	RemediationAllowedV1Beta1Condition ConditionType = "RemediationAllowed"

	// TooManyUnhealthyV1Beta1Reason means that the limit of the health check is exceeded.
	TooManyUnhealthyV1Beta1Reason = "TooManyUnhealthy"

	// WorkloadClusterUnreachableV1Beta1Reason means that the API server of the workload cluster is unreachable, so that the Nodes are
	// unknown. Only Machines with the annotation cluster.x-k8s.io/remediate-machine are remediated.
	WorkloadClusterUnreachableV1Beta1Reason = "WorkloadClusterUnreachable"

	// FleetUnhealthyV1Beta1Reason means that too many Clusters or Machines are unhealthy at the same time, in the whole management
	// cluster: what they have in common may have failed.
	FleetUnhealthyV1Beta1Reason = "FleetUnhealthy"
)

// Conditions and reasons of MachineSets, some also of control planes.
const (
	// MachinesCreatedV1Beta1Condition is True when all machines have been created, whether or not they are ready.
	MachinesCreatedV1Beta1Condition ConditionType = "MachinesCreated"

	// PreflightCheckFailedV1Beta1Reason means that a preflight check prevents the creation of machines.
	PreflightCheckFailedV1Beta1Reason = "PreflightCheckFailed"

	// BootstrapTemplateCloningFailedV1Beta1Reason means that a bootstrap configuration could not be created.
	BootstrapTemplateCloningFailedV1Beta1Reason = "BootstrapTemplateCloningFailed"

	// InfrastructureTemplateCloningFailedV1Beta1Reason means that an infrastructure object could not be created.
	InfrastructureTemplateCloningFailedV1Beta1Reason = "InfrastructureTemplateCloningFailed"

	// MachineCreationFailedV1Beta1Reason means that a Machine could not be created.
	MachineCreationFailedV1Beta1Reason = "MachineCreationFailed"

	// MachinesReadyV1Beta1Condition aggregates the Ready conditions of the machines.
	MachinesReadyV1Beta1Condition ConditionType = "MachinesReady"

	// ResizedV1Beta1Condition is True when the number of machines is as desired.
	ResizedV1Beta1Condition ConditionType = "Resized"

	// ScalingUpV1Beta1Reason means that machines are being added.
	ScalingUpV1Beta1Reason = "ScalingUp"

	// ScalingDownV1Beta1Reason means that machines are being removed.
	ScalingDownV1Beta1Reason = "ScalingDown"
)

// Conditions and reasons of MachineDeployments.
const (
	// MachineDeploymentAvailableV1Beta1Condition is True when at least replicas minus maxUnavailable machines are available.
	MachineDeploymentAvailableV1Beta1Condition ConditionType = "Available"

	// WaitingForAvailableMachinesV1Beta1Reason means that too few machines are available.
	WaitingForAvailableMachinesV1Beta1Reason = "WaitingForAvailableMachines"

	// MachineSetReadyV1Beta1Condition is the Ready condition of the latest MachineSet.
	MachineSetReadyV1Beta1Condition ConditionType = "MachineSetReady"

	// WaitingForMachineSetFallbackV1Beta1Reason is used while there is no latest MachineSet, or it gives no reason.
	WaitingForMachineSetFallbackV1Beta1Reason = "WaitingForMachineSet"
)

// Conditions and reasons of MachinePools.
const (
	// ReplicasReadyV1Beta1Condition is True when the desired number of machines is ready.
	ReplicasReadyV1Beta1Condition ConditionType = "ReplicasReady"

	// WaitingForReplicasReadyV1Beta1Reason means that machines are still missing.
	WaitingForReplicasReadyV1Beta1Reason = "WaitingForReplicasReady"
)
