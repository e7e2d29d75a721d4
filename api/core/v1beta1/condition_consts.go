package v1beta1

// Conditions and reasons of several kinds.
const (
	// ReadyCondition summarizes the other conditions of an object.
	ReadyCondition ConditionType = "Ready"

	// InfrastructureReadyCondition is, on a Cluster, Machine or MachinePool, the Ready condition of its infrastructure
	// object.
	InfrastructureReadyCondition ConditionType = "InfrastructureReady"

	// BootstrapReadyCondition is, on a Machine or MachinePool, the Ready condition of its bootstrap configuration.
	BootstrapReadyCondition ConditionType = "BootstrapReady"

	// DeletingReason means that the subject of the condition is being deleted.
	DeletingReason = "Deleting"

	// DeletionFailedReason means that deleting the subject of the condition failed.
	DeletionFailedReason = "DeletionFailed"

	// DeletedReason means that the subject of the condition is gone.
	DeletedReason = "Deleted"

	// IncorrectExternalRefReason means that a referenced object does not exist or is invalid.
	IncorrectExternalRefReason = "IncorrectExternalRef"

	// WaitingForInfrastructureFallbackReason is used while an infrastructure object is not ready and gives no reason.
	WaitingForInfrastructureFallbackReason = "WaitingForInfrastructure"

	// WaitingForDataSecretFallbackReason is used while a bootstrap configuration is not ready and gives no reason.
	WaitingForDataSecretFallbackReason = "WaitingForDataSecret"
)

// Conditions and reasons of Clusters.
const (
	// ControlPlaneReadyCondition is the Ready condition of the control plane object.
	ControlPlaneReadyCondition ConditionType = "ControlPlaneReady"

	// WaitingForControlPlaneFallbackReason is used while a control plane object is not ready and gives no reason.
	WaitingForControlPlaneFallbackReason = "WaitingForControlPlane"

	// WaitingForControlPlaneAvailableReason means that a machine waits for the control plane to serve requests.
	WaitingForControlPlaneAvailableReason = "WaitingForControlPlaneAvailable"

	// ControlPlaneInitializedCondition is True once the API server has first served a request; it stays True.
	ControlPlaneInitializedCondition ConditionType = "ControlPlaneInitialized"

	// MissingNodeRefReason means that no control plane Machine has a Node yet.
	MissingNodeRefReason = "MissingNodeRef"

	// WaitingForControlPlaneProviderInitializedReason means that the control plane object is not initialized yet.
	WaitingForControlPlaneProviderInitializedReason = "WaitingForControlPlaneProviderInitialized"

	// TopologyReconciledCondition is True when all objects of the Cluster match its topology.
	TopologyReconciledCondition ConditionType = "TopologyReconciled"

	// TopologyReconcileFailedReason means that the topology could not be computed or applied.
	TopologyReconcileFailedReason = "TopologyReconcileFailed"

	// TopologyReconciledClusterClassNotReconciledReason means that the class itself has not been reconciled yet.
	TopologyReconciledClusterClassNotReconciledReason = "ClusterClassNotReconciled"

	// TopologyReconciledHookBlockingReason means that an extension requested to wait.
	TopologyReconciledHookBlockingReason = "LifecycleHookBlocking"

	// TopologyReconciledControlPlaneUpgradePendingReason means that the control plane does not have the new version yet.
	TopologyReconciledControlPlaneUpgradePendingReason = "ControlPlaneUpgradePending"

	// TopologyReconciledMachineDeploymentsCreatePendingReason means that MachineDeployments wait to be created.
	TopologyReconciledMachineDeploymentsCreatePendingReason = "MachineDeploymentsCreatePending"

	// TopologyReconciledMachineDeploymentsUpgradePendingReason means that MachineDeployments wait for the new version.
	TopologyReconciledMachineDeploymentsUpgradePendingReason = "MachineDeploymentsUpgradePending"

	// TopologyReconciledMachineDeploymentsUpgradeDeferredReason means that the user deferred MachineDeployment upgrades.
	TopologyReconciledMachineDeploymentsUpgradeDeferredReason = "MachineDeploymentsUpgradeDeferred"

	// TopologyReconciledMachinePoolsCreatePendingReason means that MachinePools wait to be created.
	TopologyReconciledMachinePoolsCreatePendingReason = "MachinePoolsCreatePending"

	// TopologyReconciledMachinePoolsUpgradePendingReason means that MachinePools wait for the new version.
	TopologyReconciledMachinePoolsUpgradePendingReason = "MachinePoolsUpgradePending"

	// TopologyReconciledMachinePoolsUpgradeDeferredReason means that the user deferred MachinePool upgrades.
	TopologyReconciledMachinePoolsUpgradeDeferredReason = "MachinePoolsUpgradeDeferred"
)

// Conditions and reasons of ClusterClasses.
const (
	// ClusterClassVariablesReconciledCondition is True when status.variables holds the variables of the current spec.
	ClusterClassVariablesReconciledCondition ConditionType = "VariablesReconciled"

	// VariableDiscoveryFailedReason means that the variables of an extension could not be discovered.
	VariableDiscoveryFailedReason = "VariableDiscoveryFailed"

	// ClusterClassRefVersionsUpToDateCondition is True when all references use the newest API version of the contract.
	ClusterClassRefVersionsUpToDateCondition ConditionType = "RefVersionsUpToDate"

	// ClusterClassOutdatedRefVersionsReason means that references use an older API version.
	ClusterClassOutdatedRefVersionsReason = "OutdatedRefVersions"

	// ClusterClassProviderNotInstalledReason means that kinds of templates have no CustomResourceDefinition yet.
	ClusterClassProviderNotInstalledReason = "ProviderNotInstalled"
)

// Conditions and reasons of Machines.
const (
	// MachineNodeHealthyCondition is True when the Node is ready and has no pressure conditions.
	MachineNodeHealthyCondition ConditionType = "NodeHealthy"

	// WaitingForNodeRefReason means that the Machine has no provider ID to find its Node by.
	WaitingForNodeRefReason = "WaitingForNodeRef"

	// NodeProvisioningReason means that there is no Node yet.
	NodeProvisioningReason = "NodeProvisioning"

	// NodeNotFoundReason means that the Node is gone.
	NodeNotFoundReason = "NodeNotFound"

	// NodeInspectionFailedReason means that the Node could not be read.
	NodeInspectionFailedReason = "NodeInspectionFailed"

	// NodeConditionsFailedReason means that conditions of the Node are unhealthy or unknown.
	NodeConditionsFailedReason = "NodeConditionsFailed"

	// PreDrainDeleteHookSucceededCondition is True when no pre-drain hook blocks the deletion.
	PreDrainDeleteHookSucceededCondition ConditionType = "PreDrainDeleteHookSucceeded"

	// PreTerminateDeleteHookSucceededCondition is True when no pre-terminate hook blocks the deletion.
	PreTerminateDeleteHookSucceededCondition ConditionType = "PreTerminateDeleteHookSucceeded"

	// WaitingExternalHookReason means that the owner of a hook has not removed its annotation yet.
	WaitingExternalHookReason = "WaitingExternalHook"

	// DrainingSucceededCondition is True when the Node has been drained before deletion.
	DrainingSucceededCondition ConditionType = "DrainingSucceeded"

	// DrainingReason means that the Node is being drained.
	DrainingReason = "Draining"

	// DrainingFailedReason means that draining the Node failed and is retried.
	DrainingFailedReason = "DrainingFailed"

	// VolumeDetachSucceededCondition is True when all volumes have been detached from the Node before deletion.
	VolumeDetachSucceededCondition ConditionType = "VolumeDetachSucceeded"

	// WaitingForVolumeDetachReason means that volumes are still attached.
	WaitingForVolumeDetachReason = "WaitingForVolumeDetach"

	// MachineHealthCheckSucceededCondition is False when a health check found the Machine unhealthy.
	MachineHealthCheckSucceededCondition ConditionType = "HealthCheckSucceeded"

	// HasRemediateMachineAnnotationReason means that the user requested remediation by annotation.
	HasRemediateMachineAnnotationReason = "HasRemediateMachineAnnotation"

	// MachineHasFailureReason means that the Machine has a failure reason or message.
	MachineHasFailureReason = "MachineHasFailure"

	// NodeStartupTimeoutReason means that the Machine did not get a Node in time.
	NodeStartupTimeoutReason = "NodeStartupTimeout"

	// UnhealthyNodeConditionReason means that a Node condition was unhealthy for too long.
	UnhealthyNodeConditionReason = "UnhealthyNode"

	// MachineOwnerRemediatedCondition is False while the owner has to replace an unhealthy Machine, True once it has
	// started.
	MachineOwnerRemediatedCondition ConditionType = "OwnerRemediated"

	// WaitingForRemediationReason means that the owner has not acted yet.
	WaitingForRemediationReason = "WaitingForRemediation"

	// RemediationInProgressReason means that the owner is replacing the Machine.
	RemediationInProgressReason = "RemediationInProgress"

	// RemediationFailedReason means that the owner could not replace the Machine.
	RemediationFailedReason = "RemediationFailed"

	// ExternalRemediationTemplateAvailableCondition is False when the template of remediation requests is missing.
	ExternalRemediationTemplateAvailableCondition ConditionType = "ExternalRemediationTemplateAvailable"

	// ExternalRemediationTemplateNotFoundReason means that the template does not exist.
	ExternalRemediationTemplateNotFoundReason = "ExternalRemediationTemplateNotFound"

	// ExternalRemediationRequestAvailableCondition is False when a remediation request could not be created.
	ExternalRemediationRequestAvailableCondition ConditionType = "ExternalRemediationRequestAvailable"

	// ExternalRemediationRequestCreationFailedReason means that creating the request failed.
	ExternalRemediationRequestCreationFailedReason = "ExternalRemediationRequestCreationFailed"
)

// Conditions and reasons of MachineHealthChecks.
const (
	// RemediationAllowedCondition is False while too many machines are unhealthy at once, or their Nodes are unknown.
	RemediationAllowedCondition ConditionType = "RemediationAllowed"

	// TooManyUnhealthyReason means that the limit of the health check is exceeded.
	TooManyUnhealthyReason = "TooManyUnhealthy"

	// WorkloadClusterUnreachableReason means that the API server of the workload cluster is unreachable, so that the Nodes are
	// unknown. Only Machines with the annotation cluster.x-k8s.io/remediate-machine are remediated.
	WorkloadClusterUnreachableReason = "WorkloadClusterUnreachable"
)

// Conditions and reasons of MachineSets, some also of control planes.
const (
	// MachinesCreatedCondition is True when all machines have been created, whether or not they are ready.
	MachinesCreatedCondition ConditionType = "MachinesCreated"

	// PreflightCheckFailedReason means that a preflight check prevents the creation of machines.
	PreflightCheckFailedReason = "PreflightCheckFailed"

	// BootstrapTemplateCloningFailedReason means that a bootstrap configuration could not be created.
	BootstrapTemplateCloningFailedReason = "BootstrapTemplateCloningFailed"

	// InfrastructureTemplateCloningFailedReason means that an infrastructure object could not be created.
	InfrastructureTemplateCloningFailedReason = "InfrastructureTemplateCloningFailed"

	// MachineCreationFailedReason means that a Machine could not be created.
	MachineCreationFailedReason = "MachineCreationFailed"

	// MachinesReadyCondition aggregates the Ready conditions of the machines.
	MachinesReadyCondition ConditionType = "MachinesReady"

	// ResizedCondition is True when the number of machines is as desired.
	ResizedCondition ConditionType = "Resized"

	// ScalingUpReason means that machines are being added.
	ScalingUpReason = "ScalingUp"

	// ScalingDownReason means that machines are being removed.
	ScalingDownReason = "ScalingDown"
)

// Conditions and reasons of MachineDeployments.
const (
	// MachineDeploymentAvailableCondition is True when at least replicas minus maxUnavailable machines are available.
	MachineDeploymentAvailableCondition ConditionType = "Available"

	// WaitingForAvailableMachinesReason means that too few machines are available.
	WaitingForAvailableMachinesReason = "WaitingForAvailableMachines"

	// MachineSetReadyCondition is the Ready condition of the latest MachineSet.
	MachineSetReadyCondition ConditionType = "MachineSetReady"

	// WaitingForMachineSetFallbackReason is used while there is no latest MachineSet, or it gives no reason.
	WaitingForMachineSetFallbackReason = "WaitingForMachineSet"
)

// Conditions and reasons of MachinePools.
const (
	// ReplicasReadyCondition is True when the desired number of machines is ready.
	ReplicasReadyCondition ConditionType = "ReplicasReady"

	// WaitingForReplicasReadyReason means that machines are still missing.
	WaitingForReplicasReadyReason = "WaitingForReplicasReady"
)
