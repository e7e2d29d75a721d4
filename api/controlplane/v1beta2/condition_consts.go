package v1beta2

// Conditions of KubeadmControlPlane besides those of all kinds, and their reasons. A reason that is not here is that of all
// kinds.
const (
	// KubeadmControlPlaneInitializedCondition reports whether the first Machine completed `kubeadm init`. Once true it stays true.
	KubeadmControlPlaneInitializedCondition = "Initialized"

	// KubeadmControlPlaneInitializedReason: the first Machine completed `kubeadm init`.
	KubeadmControlPlaneInitializedReason = "Initialized"

	// KubeadmControlPlaneNotInitializedReason: no Machine completed `kubeadm init` yet.
	KubeadmControlPlaneNotInitializedReason = "NotInitialized"

	// KubeadmControlPlaneCertificatesAvailableCondition reports whether the cluster certificates exist or could be generated.
	KubeadmControlPlaneCertificatesAvailableCondition = "CertificatesAvailable"

	// ExpiringCAMessage begins each line of its message, after "* ", about a CA that expires soon.
	ExpiringCAMessage = "The CA in Secret "

	// KubeadmControlPlaneEtcdClusterHealthyCondition aggregates the health of the etcd members; absent with an external etcd.
	KubeadmControlPlaneEtcdClusterHealthyCondition = "EtcdClusterHealthy"

	// KubeadmControlPlaneControlPlaneComponentsHealthyCondition aggregates the health of the static Pods of all Machines.
	KubeadmControlPlaneControlPlaneComponentsHealthyCondition = "ControlPlaneComponentsHealthy"

	// KubeadmControlPlaneHealthyReason of the two conditions above: no Machine reports a problem.
	KubeadmControlPlaneHealthyReason = "Healthy"

	// KubeadmControlPlaneNotHealthyReason of the two conditions above: a Machine, or etcd as a whole, reports a problem.
	KubeadmControlPlaneNotHealthyReason = "NotHealthy"

	// KubeadmControlPlaneHealthUnknownReason of the two conditions above: there is no problem, but not everything is known.
	KubeadmControlPlaneHealthUnknownReason = "HealthUnknown"

	// KubeadmControlPlaneDeletingWaitingForWorkersDeletionReason of the condition Deleting: workers still exist.
	KubeadmControlPlaneDeletingWaitingForWorkersDeletionReason = "WaitingForWorkersDeletion"

	// KubeadmControlPlaneDeletingWaitingForMachineDeletionReason of the condition Deleting: control plane Machines still exist.
	KubeadmControlPlaneDeletingWaitingForMachineDeletionReason = "WaitingForMachineDeletion"
)

// Conditions that a KubeadmControlPlane sets on its Machines.
const (
	// KubeadmControlPlaneMachineAPIServerPodHealthyCondition reports the API server's Pod.
	KubeadmControlPlaneMachineAPIServerPodHealthyCondition = "APIServerPodHealthy"

	// KubeadmControlPlaneMachineControllerManagerPodHealthyCondition reports the controller manager's Pod.
	KubeadmControlPlaneMachineControllerManagerPodHealthyCondition = "ControllerManagerPodHealthy"

	// KubeadmControlPlaneMachineSchedulerPodHealthyCondition reports the scheduler's Pod.
	KubeadmControlPlaneMachineSchedulerPodHealthyCondition = "SchedulerPodHealthy"

	// KubeadmControlPlaneMachineEtcdPodHealthyCondition reports etcd's Pod; absent with an external etcd.
	KubeadmControlPlaneMachineEtcdPodHealthyCondition = "EtcdPodHealthy"

	// KubeadmControlPlaneMachineEtcdMemberHealthyCondition reports the Machine's etcd member; absent with an external etcd.
	KubeadmControlPlaneMachineEtcdMemberHealthyCondition = "EtcdMemberHealthy"

	// KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition reports whether the Node has the label of the control plane
	// and, unless configured otherwise, its taint.
	KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition = "NodeKubeadmLabelsAndTaintsSet"
)

// Reasons of the conditions of a control plane's Machines. If something cannot be read, the reason is InspectionFailed; if the
// Machine is being deleted, it is Deleting.
const (
	// KubeadmControlPlaneMachinePodRunningReason: the Pod is ready.
	KubeadmControlPlaneMachinePodRunningReason = "Running"

	// KubeadmControlPlaneMachinePodProvisioningReason: the Pod is starting.
	KubeadmControlPlaneMachinePodProvisioningReason = "Provisioning"

	// KubeadmControlPlaneMachinePodDoesNotExistReason: the Pod does not exist.
	KubeadmControlPlaneMachinePodDoesNotExistReason = "DoesNotExist"

	// KubeadmControlPlaneMachinePodFailedReason: a container of the Pod cannot start, or terminated.
	KubeadmControlPlaneMachinePodFailedReason = "Failed"

	// KubeadmControlPlaneMachineEtcdMemberHealthyReason: the member works.
	KubeadmControlPlaneMachineEtcdMemberHealthyReason = "Healthy"

	// KubeadmControlPlaneMachineEtcdMemberNotHealthyReason: the member has an alarm, is unknown to the others, disagrees with
	// them, or does not respond.
	KubeadmControlPlaneMachineEtcdMemberNotHealthyReason = "NotHealthy"

	// KubeadmControlPlaneMachineNodeLabelsAndTaintsSetReason: the Node has what it needs.
	KubeadmControlPlaneMachineNodeLabelsAndTaintsSetReason = "Set"

	// KubeadmControlPlaneMachineNodeLabelsAndTaintsNotSetReason: the label or the taint is missing.
	KubeadmControlPlaneMachineNodeLabelsAndTaintsNotSetReason = "NotSet"
)
