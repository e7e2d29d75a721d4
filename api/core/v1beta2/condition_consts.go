package v1beta2

// Conditions and reasons of several kinds. The prefix of other constants is the kind that has the condition; a reason that several
// kinds have, or that several conditions of a kind have, is defined here only.
const (
	// ReadyCondition is True when an object works as desired, as far as its users are concerned.
	ReadyCondition = "Ready"
	// ReadyReason means that the subject of the condition is ready.
	ReadyReason = "Ready"
	// NotReadyReason means that the subject of the condition is not ready.
	NotReadyReason = "NotReady"
	// ReadyUnknownReason means that readiness could not be determined.
	ReadyUnknownReason = "ReadyUnknown"

	// AvailableCondition is True when an object serves its purpose, although parts of it may not work.
	AvailableCondition = "Available"
	// AvailableReason means that the subject of the condition is available.
	AvailableReason = "Available"
	// NotAvailableReason means that the subject of the condition is not available.
	NotAvailableReason = "NotAvailable"
	// AvailableUnknownReason means that availability could not be determined.
	AvailableUnknownReason = "AvailableUnknown"

	// UpToDateReason means that machines match the specification of their owner.
	UpToDateReason = "UpToDate"
	// NotUpToDateReason means that machines differ from the specification of their owner.
	NotUpToDateReason = "NotUpToDate"
	// UpToDateUnknownReason means that machines could not be compared with the specification of their owner.
	UpToDateUnknownReason = "UpToDateUnknown"

	// MachinesReadyCondition aggregates the condition Ready of the machines of an object.
	MachinesReadyCondition = "MachinesReady"
	// MachinesUpToDateCondition aggregates the condition UpToDate of the machines of an object.
	MachinesUpToDateCondition = "MachinesUpToDate"

	// RollingOutCondition is True while machines are being replaced or updated, because they differ from the specification.
	RollingOutCondition = "RollingOut"
	// RollingOutReason means that at least one machine is not up to date.
	RollingOutReason = "RollingOut"
	// NotRollingOutReason means that all machines are up to date.
	NotRollingOutReason = "NotRollingOut"
	// RollingOutUnknownReason means that whether machines are being rolled out could not be determined.
	RollingOutUnknownReason = "RollingOutUnknown"

	// ScalingUpCondition is True while there are fewer machines than desired.
	ScalingUpCondition = "ScalingUp"
	// ScalingUpReason means that there are fewer machines than desired.
	ScalingUpReason = "ScalingUp"
	// NotScalingUpReason means that there are at least as many machines as desired.
	NotScalingUpReason = "NotScalingUp"
	// ScalingUpUnknownReason means that the number of machines could not be determined.
	ScalingUpUnknownReason = "ScalingUpUnknown"

	// ScalingDownCondition is True while there are more machines than desired.
	ScalingDownCondition = "ScalingDown"
	// ScalingDownReason means that there are more machines than desired.
	ScalingDownReason = "ScalingDown"
	// NotScalingDownReason means that there are at most as many machines as desired.
	NotScalingDownReason = "NotScalingDown"
	// ScalingDownUnknownReason means that the number of machines could not be determined.
	ScalingDownUnknownReason = "ScalingDownUnknown"

	// RemediatingCondition is True while an owner has to replace unhealthy machines.
	RemediatingCondition = "Remediating"
	// RemediatingReason means that at least one unhealthy machine must be replaced.
	RemediatingReason = "Remediating"
	// NotRemediatingReason means that no unhealthy machine must be replaced.
	NotRemediatingReason = "NotRemediating"

	// DeletingCondition is True while an object is being deleted; its message lists what the deletion waits for.
	DeletingCondition = "Deleting"
	// NotDeletingReason means that the object is not being deleted.
	NotDeletingReason = "NotDeleting"
	// DeletingReason means that the object is being deleted.
	DeletingReason = "Deleting"
	// DeletionCompletedReason means that everything the object waited for has been deleted.
	DeletionCompletedReason = "DeletionCompleted"

	// PausedCondition is True while no controller acts on an object, because it or its Cluster is paused.
	PausedCondition = "Paused"
	// PausedReason means that the object or its Cluster is paused.
	PausedReason = "Paused"
	// NotPausedReason means that neither the object nor its Cluster is paused.
	NotPausedReason = "NotPaused"

	// NoReplicasReason means that there are no machines the condition could be about.
	NoReplicasReason = "NoReplicas"
	// WaitingForReplicasSetReason means that spec.replicas is unset.
	WaitingForReplicasSetReason = "WaitingForReplicasSet"
	// InvalidConditionReportedReason means that a condition of another object, which this one mirrors, is invalid.
	InvalidConditionReportedReason = "InvalidConditionReported"
	// NoReasonReportedReason replaces the reason of a condition of another object that has none.
	NoReasonReportedReason = "NoReasonReported"
	// InternalErrorReason means that an unexpected error occurred, which the log of the controller reports.
	InternalErrorReason = "InternalError"
	// ObjectDoesNotExistReason means that a referenced object does not exist.
	ObjectDoesNotExistReason = "ObjectDoesNotExist"
	// ObjectDeletedReason means that a referenced object existed, and has been deleted.
	ObjectDeletedReason = "ObjectDeleted"
	// ConnectionDownReason means that the workload cluster has been unreachable for too long.
	ConnectionDownReason = "ConnectionDown"
	// InspectionFailedReason means that something in the workload cluster could not be read.
	InspectionFailedReason = "InspectionFailed"
	// ProvisionedReason means that the provider reports that the subject of the condition is provisioned.
	ProvisionedReason = "Provisioned"
	// NotProvisionedReason means that the provider reports that the subject of the condition is not provisioned yet.
	NotProvisionedReason = "NotProvisioned"
	// NotYetReportedReason means that the controller which sets the condition has not done so yet.
	NotYetReportedReason = "NotYetReported"
	// WaitingForClusterInfrastructureReadyReason means that the infrastructure of the Cluster is not provisioned yet.
	WaitingForClusterInfrastructureReadyReason = "WaitingForClusterInfrastructureReady"
	// WaitingForControlPlaneInitializedReason means that the API server of the workload cluster does not serve requests yet.
	WaitingForControlPlaneInitializedReason = "WaitingForControlPlaneInitialized"
	// WaitingForBootstrapDataReason means that the bootstrap data of a machine does not exist yet.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"

	// IssuesReportedReason means that at least one of several merged conditions is unhealthy.
	IssuesReportedReason = "IssuesReported"
	// UnknownReportedReason means that none of several merged conditions is unhealthy, and at least one is unknown.
	UnknownReportedReason = "UnknownReported"
	// InfoReportedReason means that none of several merged conditions is unhealthy or unknown.
	InfoReportedReason = "InfoReported"
)

// Conditions and reasons of Clusters.
const (
	// ClusterAvailableCondition summarizes the conditions of a Cluster that its users depend on.
	ClusterAvailableCondition = AvailableCondition

	// ClusterInfrastructureReadyCondition mirrors the condition Ready of the infrastructure object.
	ClusterInfrastructureReadyCondition = InfrastructureReadyCondition

	// ClusterControlPlaneAvailableCondition mirrors the condition Available of the control plane object.
	ClusterControlPlaneAvailableCondition = "ControlPlaneAvailable"

	// ClusterControlPlaneInitializedCondition is True once the API server has first served a request; it stays True.
	ClusterControlPlaneInitializedCondition = "ControlPlaneInitialized"
	// ClusterControlPlaneInitializedReason means that the API server has served requests.
	ClusterControlPlaneInitializedReason = "Initialized"
	// ClusterControlPlaneNotInitializedReason means that the API server has not served any request yet.
	ClusterControlPlaneNotInitializedReason = "NotInitialized"

	// ClusterWorkersAvailableCondition aggregates the condition Available of the MachineDeployments.
	ClusterWorkersAvailableCondition = "WorkersAvailable"
	// ClusterNoWorkersReason means that the Cluster has no MachineDeployments.
	ClusterNoWorkersReason = "NoWorkers"

	// ClusterRemoteConnectionProbeCondition is True while the API server of the workload cluster responds.
	ClusterRemoteConnectionProbeCondition = "RemoteConnectionProbe"
	// ClusterRemoteConnectionProbeSucceededReason means that the last probe of the API server succeeded recently.
	ClusterRemoteConnectionProbeSucceededReason = "ProbeSucceeded"
	// ClusterRemoteConnectionProbeFailedReason means that no probe of the API server succeeded recently.
	ClusterRemoteConnectionProbeFailedReason = "ProbeFailed"

	// ClusterBackupUpToDateCondition is False on a Cluster that is paused since it was restored from a backup of the management cluster, and
	// does not exist otherwise.
	ClusterBackupUpToDateCondition = "BackupUpToDate"
	// ClusterBackupOutdatedReason means that Nodes have no Machine, or Machines have lost their Node, since the backup was made.
	ClusterBackupOutdatedReason = "BackupOutdated"
	// ClusterNodesNotReadReason means that the Nodes of the workload cluster could not be compared with Machines yet.
	ClusterNodesNotReadReason = "NodesNotRead"

	// ClusterControlPlaneMachinesReadyCondition aggregates the condition Ready of the control plane machines.
	ClusterControlPlaneMachinesReadyCondition = "ControlPlaneMachinesReady"
	// ClusterControlPlaneMachinesUpToDateCondition aggregates the condition UpToDate of the control plane machines.
	ClusterControlPlaneMachinesUpToDateCondition = "ControlPlaneMachinesUpToDate"
	// ClusterWorkerMachinesReadyCondition aggregates the condition Ready of the worker machines.
	ClusterWorkerMachinesReadyCondition = "WorkerMachinesReady"
	// ClusterWorkerMachinesUpToDateCondition aggregates the condition UpToDate of the worker machines.
	ClusterWorkerMachinesUpToDateCondition = "WorkerMachinesUpToDate"

	// ClusterTopologyReconciledCondition is True when all objects of the Cluster match its topology.
	ClusterTopologyReconciledCondition = "TopologyReconciled"
	// ClusterTopologyReconcileSucceededReason means that all objects match the topology.
	ClusterTopologyReconcileSucceededReason = "ReconcileSucceeded"
	// ClusterTopologyReconcileFailedReason means that the topology could not be computed or applied.
	ClusterTopologyReconcileFailedReason = "ReconcileFailed"
	// ClusterTopologyReconciledClusterCreatingReason means that an extension has not allowed the creation to begin yet.
	ClusterTopologyReconciledClusterCreatingReason = "ClusterCreating"
	// ClusterTopologyReconciledClusterUpgradingReason means that not all objects have the new Kubernetes version yet.
	ClusterTopologyReconciledClusterUpgradingReason = "ClusterUpgrading"
	// ClusterTopologyReconciledMachineDeploymentsUpgradeDeferredReason means that only MachineDeployments do not have the new
	// version, because their users deferred it.
	ClusterTopologyReconciledMachineDeploymentsUpgradeDeferredReason = "MachineDeploymentsUpgradeDeferred"
	// ClusterTopologyReconciledMachinePoolsUpgradeDeferredReason means that only MachinePools do not have the new version, because
	// their users deferred it.
	ClusterTopologyReconciledMachinePoolsUpgradeDeferredReason = "MachinePoolsUpgradeDeferred"
	// ClusterTopologyReconciledClusterClassNotReconciledReason means that the class itself has not been reconciled yet.
	ClusterTopologyReconciledClusterClassNotReconciledReason = "ClusterClassNotReconciled"
	// ClusterTopologyReconciledControlPlaneUpgradePendingReason is no longer set.
	ClusterTopologyReconciledControlPlaneUpgradePendingReason = "ControlPlaneUpgradePending"
	// ClusterTopologyReconciledMachineDeploymentsCreatePendingReason is no longer set.
	ClusterTopologyReconciledMachineDeploymentsCreatePendingReason = "MachineDeploymentsCreatePending"
	// ClusterTopologyReconciledMachineDeploymentsUpgradePendingReason is no longer set.
	ClusterTopologyReconciledMachineDeploymentsUpgradePendingReason = "MachineDeploymentsUpgradePending"
	// ClusterTopologyReconciledMachinePoolsCreatePendingReason is no longer set.
	ClusterTopologyReconciledMachinePoolsCreatePendingReason = "MachinePoolsCreatePending"
	// ClusterTopologyReconciledMachinePoolsUpgradePendingReason is no longer set.
	ClusterTopologyReconciledMachinePoolsUpgradePendingReason = "MachinePoolsUpgradePending"
	// ClusterTopologyReconciledHookBlockingReason is no longer set.
	ClusterTopologyReconciledHookBlockingReason = "LifecycleHookBlocking"

	// ClusterDeletingWaitingForBeforeDeleteHookReason means that an extension has not allowed the deletion to begin yet.
	ClusterDeletingWaitingForBeforeDeleteHookReason = "WaitingForBeforeDeleteHook"
	// ClusterDeletingWaitingForWorkersDeletionReason means that workers are being deleted.
	ClusterDeletingWaitingForWorkersDeletionReason = "WaitingForWorkersDeletion"
	// ClusterDeletingWaitingForControlPlaneDeletionReason means that the control plane is being deleted.
	ClusterDeletingWaitingForControlPlaneDeletionReason = "WaitingForControlPlaneDeletion"
	// ClusterDeletingWaitingForInfrastructureDeletionReason means that the infrastructure object is being deleted.
	ClusterDeletingWaitingForInfrastructureDeletionReason = "WaitingForInfrastructureDeletion"
)

// Conditions and reasons of ClusterClasses.
const (
	// ClusterClassVariablesReadyCondition is True when status.variables holds the variables of the current spec.
	ClusterClassVariablesReadyCondition = "VariablesReady"
	// ClusterClassVariablesReadyReason means that all variables are known.
	ClusterClassVariablesReadyReason = "VariablesReady"
	// ClusterClassVariablesReadyVariableDiscoveryFailedReason means that the variables of an extension could not be discovered.
	ClusterClassVariablesReadyVariableDiscoveryFailedReason = "VariableDiscoveryFailed"

	// ClusterClassRefVersionsUpToDateCondition is True when all references use the newest API version of the contract.
	ClusterClassRefVersionsUpToDateCondition = "RefVersionsUpToDate"
	// ClusterClassRefVersionsUpToDateReason means that all references use the newest API version.
	ClusterClassRefVersionsUpToDateReason = "RefVersionsUpToDate"
	// ClusterClassRefVersionsNotUpToDateReason means that references use an older API version.
	ClusterClassRefVersionsNotUpToDateReason = "RefVersionsNotUpToDate"
)

// Conditions and reasons of MachineHealthChecks.
const (
	// MachineHealthCheckRemediationAllowedCondition is False while too many machines are unhealthy at once.
	MachineHealthCheckRemediationAllowedCondition = "RemediationAllowed"
	// MachineHealthCheckRemediationAllowedReason means that unhealthy machines may be remediated.
	MachineHealthCheckRemediationAllowedReason = "RemediationAllowed"
	// MachineHealthCheckTooManyUnhealthyReason means that the limit of the health check is exceeded.
	MachineHealthCheckTooManyUnhealthyReason = "TooManyUnhealthy"
)

// Reasons of MachineDeployments.
const (
	// MachineDeploymentAvailableWaitingForAvailableReplicasSetReason means that status.availableReplicas is unset.
	MachineDeploymentAvailableWaitingForAvailableReplicasSetReason = "WaitingForAvailableReplicasSet"
)
