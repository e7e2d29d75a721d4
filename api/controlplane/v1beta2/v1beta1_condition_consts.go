package v1beta2

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Conditions of KubeadmControlPlane that Ready summarizes.
const (
	// MachinesCreatedV1Beta1Condition reports whether Machines could be created.
	MachinesCreatedV1Beta1Condition clusterv1.ConditionType = "MachinesCreated"

	// MachinesSpecUpToDateV1Beta1Condition reports whether every Machine matches the spec. It appears with the first rollout.
	MachinesSpecUpToDateV1Beta1Condition clusterv1.ConditionType = "MachinesSpecUpToDate"

	// ResizedV1Beta1Condition reports whether the number of Machines is as desired.
	ResizedV1Beta1Condition clusterv1.ConditionType = "Resized"

	// MachinesReadyV1Beta1Condition aggregates the Ready conditions of the Machines.
	MachinesReadyV1Beta1Condition clusterv1.ConditionType = "MachinesReady"

	// AvailableV1Beta1Condition reports whether the first Machine completed `kubeadm init`. Once true it stays true.
	AvailableV1Beta1Condition clusterv1.ConditionType = "Available"

	// CertificatesAvailableV1Beta1Condition reports whether the cluster certificates exist or could be generated.
	CertificatesAvailableV1Beta1Condition clusterv1.ConditionType = "CertificatesAvailable"
)

// Reasons of MachinesCreatedV1Beta1Condition when it is false, all of severity Error.
const (
	// InfrastructureTemplateCloningFailedV1Beta1Reason: the infrastructure template could not be cloned.
	InfrastructureTemplateCloningFailedV1Beta1Reason = "InfrastructureTemplateCloningFailed"

	// BootstrapTemplateCloningFailedV1Beta1Reason: the KubeadmConfig could not be created.
	BootstrapTemplateCloningFailedV1Beta1Reason = "BootstrapTemplateCloningFailed"

	// MachineGenerationFailedV1Beta1Reason: the Machine could not be created.
	MachineGenerationFailedV1Beta1Reason = "MachineGenerationFailed"
)

// Reasons of the other conditions that Ready summarizes, when they are false.
const (
	// RollingUpdateInProgressV1Beta1Reason (severity Warning) of MachinesSpecUpToDateV1Beta1Condition: Machines are being replaced.
	RollingUpdateInProgressV1Beta1Reason = "RollingUpdateInProgress"

	// ScalingUpV1Beta1Reason (severity Warning) of ResizedV1Beta1Condition: Machines are missing.
	ScalingUpV1Beta1Reason = "ScalingUp"

	// ScalingDownV1Beta1Reason (severity Warning) of ResizedV1Beta1Condition: there are too many Machines.
	ScalingDownV1Beta1Reason = "ScalingDown"

	// WaitingForKubeadmInitV1Beta1Reason (severity Info) of AvailableV1Beta1Condition: `kubeadm init` has not completed yet.
	WaitingForKubeadmInitV1Beta1Reason = "WaitingForKubeadmInit"

	// CertificatesGenerationFailedV1Beta1Reason (severity Warning) of CertificatesAvailableV1Beta1Condition: certificates could not be
	// generated or stored; it is retried.
	CertificatesGenerationFailedV1Beta1Reason = "CertificatesGenerationFailed"
)

// Conditions of KubeadmControlPlane that report health and are not part of Ready.
const (
	// ControlPlaneComponentsHealthyV1Beta1Condition aggregates the health of the static Pods of all Machines.
	ControlPlaneComponentsHealthyV1Beta1Condition clusterv1.ConditionType = "ControlPlaneComponentsHealthy"

	// EtcdClusterHealthyV1Beta1Condition aggregates the health of the etcd members. Always true with an external etcd.
	EtcdClusterHealthyV1Beta1Condition clusterv1.ConditionType = "EtcdClusterHealthy"
)

// Reasons of the health conditions of KubeadmControlPlane.
const (
	// ControlPlaneComponentsUnhealthyV1Beta1Reason (False): at least one Machine reports a problem.
	ControlPlaneComponentsUnhealthyV1Beta1Reason = "ControlPlaneComponentsUnhealthy"

	// ControlPlaneComponentsUnknownV1Beta1Reason (Unknown): no Machine's health is known.
	ControlPlaneComponentsUnknownV1Beta1Reason = "ControlPlaneComponentsUnknown"

	// ControlPlaneComponentsInspectionFailedV1Beta1Reason (Unknown): the workload cluster could not be inspected.
	ControlPlaneComponentsInspectionFailedV1Beta1Reason = "ControlPlaneComponentsInspectionFailed"

	// EtcdClusterUnhealthyV1Beta1Reason (False): at least one etcd member reports a problem.
	EtcdClusterUnhealthyV1Beta1Reason = "EtcdClusterUnhealthy"

	// EtcdClusterUnknownV1Beta1Reason (Unknown): no etcd member's health is known.
	EtcdClusterUnknownV1Beta1Reason = "EtcdClusterUnknown"

	// EtcdClusterInspectionFailedV1Beta1Reason (Unknown): the etcd cluster could not be inspected.
	EtcdClusterInspectionFailedV1Beta1Reason = "EtcdClusterInspectionFailed"
)

// Conditions that a KubeadmControlPlane sets on its Machines.
const (
	// MachineAPIServerPodHealthyV1Beta1Condition reports the API server's Pod.
	MachineAPIServerPodHealthyV1Beta1Condition clusterv1.ConditionType = "APIServerPodHealthy"

	// MachineControllerManagerPodHealthyV1Beta1Condition reports the controller manager's Pod.
	MachineControllerManagerPodHealthyV1Beta1Condition clusterv1.ConditionType = "ControllerManagerPodHealthy"

	// MachineSchedulerPodHealthyV1Beta1Condition reports the scheduler's Pod.
	MachineSchedulerPodHealthyV1Beta1Condition clusterv1.ConditionType = "SchedulerPodHealthy"

	// MachineEtcdPodHealthyV1Beta1Condition reports etcd's Pod; absent with an external etcd.
	MachineEtcdPodHealthyV1Beta1Condition clusterv1.ConditionType = "EtcdPodHealthy"

	// MachineEtcdMemberHealthyV1Beta1Condition reports the Machine's etcd member; absent with an external etcd.
	MachineEtcdMemberHealthyV1Beta1Condition clusterv1.ConditionType = "EtcdMemberHealthy"
)

// Reasons of the conditions of a control plane's Machines.
const (
	// PodProvisioningV1Beta1Reason (False, severity Info): the Pod is starting.
	PodProvisioningV1Beta1Reason = "PodProvisioning"

	// PodMissingV1Beta1Reason (False, severity Error): the Pod does not exist.
	PodMissingV1Beta1Reason = "PodMissing"

	// PodFailedV1Beta1Reason (False, severity Error): the Pod failed, or its Node does not exist.
	PodFailedV1Beta1Reason = "PodFailed"

	// PodInspectionFailedV1Beta1Reason (Unknown): the Pod's state could not be read.
	PodInspectionFailedV1Beta1Reason = "PodInspectionFailed"

	// EtcdMemberUnhealthyV1Beta1Reason (False, severity Error): the member has an alarm, is unknown to the others, disagrees
	// with them, or does not respond.
	EtcdMemberUnhealthyV1Beta1Reason = "EtcdMemberUnhealthy"

	// EtcdMemberInspectionFailedV1Beta1Reason (Unknown): the member's state could not be read. The value lacks the prefix of the
	// name; users see it, so it stays.
	EtcdMemberInspectionFailedV1Beta1Reason = "MemberInspectionFailed"
)
