package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"

// Conditions of KubeadmControlPlane that Ready summarizes.
const (
	// MachinesCreatedCondition reports whether Machines could be created.
	MachinesCreatedCondition clusterv1.ConditionType = "MachinesCreated"

	// MachinesSpecUpToDateCondition reports whether every Machine matches the spec. It appears with the first rollout.
	MachinesSpecUpToDateCondition clusterv1.ConditionType = "MachinesSpecUpToDate"

	// ResizedCondition reports whether the number of Machines is as desired.
	ResizedCondition clusterv1.ConditionType = "Resized"

	// MachinesReadyCondition aggregates the Ready conditions of the Machines.
	MachinesReadyCondition clusterv1.ConditionType = "MachinesReady"

	// AvailableCondition reports whether the first Machine completed `kubeadm init`. Once true it stays true.
	AvailableCondition clusterv1.ConditionType = "Available"

	// CertificatesAvailableCondition reports whether the cluster certificates exist or could be generated.
	CertificatesAvailableCondition clusterv1.ConditionType = "CertificatesAvailable"
)

// Reasons of MachinesCreatedCondition when it is false, all of severity Error.
const (
	// InfrastructureTemplateCloningFailedReason: the infrastructure template could not be cloned.
	InfrastructureTemplateCloningFailedReason = "InfrastructureTemplateCloningFailed"

	// BootstrapTemplateCloningFailedReason: the KubeadmConfig could not be created.
	BootstrapTemplateCloningFailedReason = "BootstrapTemplateCloningFailed"

	// MachineGenerationFailedReason: the Machine could not be created.
	MachineGenerationFailedReason = "MachineGenerationFailed"
)

// Reasons of the other conditions that Ready summarizes, when they are false.
const (
	// RollingUpdateInProgressReason (severity Warning) of MachinesSpecUpToDateCondition: Machines are being replaced.
	RollingUpdateInProgressReason = "RollingUpdateInProgress"

	// ScalingUpReason (severity Warning) of ResizedCondition: Machines are missing.
	ScalingUpReason = "ScalingUp"

	// ScalingDownReason (severity Warning) of ResizedCondition: there are too many Machines.
	ScalingDownReason = "ScalingDown"

	// WaitingForKubeadmInitReason (severity Info) of AvailableCondition: `kubeadm init` has not completed yet.
	WaitingForKubeadmInitReason = "WaitingForKubeadmInit"

	// CertificatesGenerationFailedReason (severity Warning) of CertificatesAvailableCondition: certificates could not be
	// generated or stored; it is retried.
	CertificatesGenerationFailedReason = "CertificatesGenerationFailed"
)

// Conditions of KubeadmControlPlane that report health and are not part of Ready.
const (
	// ControlPlaneComponentsHealthyCondition aggregates the health of the static Pods of all Machines.
	ControlPlaneComponentsHealthyCondition clusterv1.ConditionType = "ControlPlaneComponentsHealthy"

	// EtcdClusterHealthyCondition aggregates the health of the etcd members. Always true with an external etcd.
	EtcdClusterHealthyCondition clusterv1.ConditionType = "EtcdClusterHealthy"
)

// Reasons of the health conditions of KubeadmControlPlane.
const (
	// ControlPlaneComponentsUnhealthyReason (False): at least one Machine reports a problem.
	ControlPlaneComponentsUnhealthyReason = "ControlPlaneComponentsUnhealthy"

	// ControlPlaneComponentsUnknownReason (Unknown): no Machine's health is known.
	ControlPlaneComponentsUnknownReason = "ControlPlaneComponentsUnknown"

	// ControlPlaneComponentsInspectionFailedReason (Unknown): the workload cluster could not be inspected.
	ControlPlaneComponentsInspectionFailedReason = "ControlPlaneComponentsInspectionFailed"

	// EtcdClusterUnhealthyReason (False): at least one etcd member reports a problem.
	EtcdClusterUnhealthyReason = "EtcdClusterUnhealthy"

	// EtcdClusterUnknownReason (Unknown): no etcd member's health is known.
	EtcdClusterUnknownReason = "EtcdClusterUnknown"

	// EtcdClusterInspectionFailedReason (Unknown): the etcd cluster could not be inspected.
	EtcdClusterInspectionFailedReason = "EtcdClusterInspectionFailed"
)

// Conditions that a KubeadmControlPlane sets on its Machines.
const (
	// MachineAPIServerPodHealthyCondition reports the API server's Pod.
	MachineAPIServerPodHealthyCondition clusterv1.ConditionType = "APIServerPodHealthy"

	// MachineControllerManagerPodHealthyCondition reports the controller manager's Pod.
	MachineControllerManagerPodHealthyCondition clusterv1.ConditionType = "ControllerManagerPodHealthy"

	// MachineSchedulerPodHealthyCondition reports the scheduler's Pod.
	MachineSchedulerPodHealthyCondition clusterv1.ConditionType = "SchedulerPodHealthy"

	// MachineEtcdPodHealthyCondition reports etcd's Pod; absent with an external etcd.
	MachineEtcdPodHealthyCondition clusterv1.ConditionType = "EtcdPodHealthy"

	// MachineEtcdMemberHealthyCondition reports the Machine's etcd member; absent with an external etcd.
	MachineEtcdMemberHealthyCondition clusterv1.ConditionType = "EtcdMemberHealthy"
)

// Reasons of the conditions of a control plane's Machines.
const (
	// PodProvisioningReason (False, severity Info): the Pod is starting.
	PodProvisioningReason = "PodProvisioning"

	// PodMissingReason (False, severity Error): the Pod does not exist.
	PodMissingReason = "PodMissing"

	// PodFailedReason (False, severity Error): the Pod failed, or its Node does not exist.
	PodFailedReason = "PodFailed"

	// PodInspectionFailedReason (Unknown): the Pod's state could not be read.
	PodInspectionFailedReason = "PodInspectionFailed"

	// EtcdMemberUnhealthyReason (False, severity Error): the member has an alarm, is unknown to the others, disagrees
	// with them, or does not respond.
	EtcdMemberUnhealthyReason = "EtcdMemberUnhealthy"

	// EtcdMemberInspectionFailedReason (Unknown): the member's state could not be read. The value lacks the prefix of the
	// name; users see it, so it stays.
	EtcdMemberInspectionFailedReason = "MemberInspectionFailed"
)
