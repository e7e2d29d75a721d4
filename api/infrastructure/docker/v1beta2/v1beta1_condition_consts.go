package v1beta2

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// LoadBalancerAvailableV1Beta1Condition of DockerCluster reports whether the load balancer's container runs; Ready is its
// summary.
const LoadBalancerAvailableV1Beta1Condition clusterv1.ConditionType = "LoadBalancerAvailable"

// LoadBalancerProvisioningFailedV1Beta1Reason (severity Warning) of LoadBalancerAvailableV1Beta1Condition: the container could not be made;
// it is retried.
const LoadBalancerProvisioningFailedV1Beta1Reason = "LoadBalancerProvisioningFailed"

// PullingImageV1Beta1Reason (severity Info) of LoadBalancerAvailableV1Beta1Condition and ContainerProvisionedV1Beta1Condition: the image
// of the container is not present, and is being pulled.
const PullingImageV1Beta1Reason = "PullingImage"

// Conditions of DockerMachine; Ready summarizes both.
const (
	// ContainerProvisionedV1Beta1Condition reports whether the machine's container runs.
	ContainerProvisionedV1Beta1Condition clusterv1.ConditionType = "ContainerProvisioned"

	// BootstrapExecSucceededV1Beta1Condition reports whether the bootstrap data ran to its end in the container.
	BootstrapExecSucceededV1Beta1Condition clusterv1.ConditionType = "BootstrapExecSucceeded"
)

// Reasons of ContainerProvisionedV1Beta1Condition when it is false.
const (
	// WaitingForClusterInfrastructureV1Beta1Reason (severity Info): the Cluster's infrastructure is not ready yet.
	WaitingForClusterInfrastructureV1Beta1Reason = "WaitingForClusterInfrastructure"

	// WaitingForControlPlaneAvailableV1Beta1Reason (severity Info): a worker waits for the first control plane machine.
	WaitingForControlPlaneAvailableV1Beta1Reason = "WaitingForControlPlaneAvailable"

	// WaitingForBootstrapDataV1Beta1Reason (severity Info): the bootstrap data does not exist yet.
	WaitingForBootstrapDataV1Beta1Reason = "WaitingForBootstrapData"

	// LoadingImagesV1Beta1Reason (severity Info): the images of spec.preLoadImages are being copied into the container.
	LoadingImagesV1Beta1Reason = "LoadingImages"

	// ContainerProvisioningFailedV1Beta1Reason (severity Warning): the container could not be made; it is retried.
	ContainerProvisioningFailedV1Beta1Reason = "ContainerProvisioningFailed"

	// ContainerDeletedV1Beta1Reason (severity Error): the container of a provisioned machine disappeared.
	ContainerDeletedV1Beta1Reason = "ContainerDeleted"
)

// Reasons of BootstrapExecSucceededV1Beta1Condition when it is false.
const (
	// BootstrappingV1Beta1Reason (severity Info): the bootstrap data is running.
	BootstrappingV1Beta1Reason = "Bootstrapping"

	// BootstrapFailedV1Beta1Reason (severity Warning): the bootstrap data failed; it is retried.
	BootstrapFailedV1Beta1Reason = "BootstrapFailed"
)

// Conditions of DockerMachinePool.
const (
	// ReplicasReadyV1Beta1Condition reports whether every instance is ready.
	ReplicasReadyV1Beta1Condition clusterv1.ConditionType = "ReplicasReady"

	// ResizedV1Beta1Condition reports whether the number of instances is the number asked for.
	ResizedV1Beta1Condition clusterv1.ConditionType = "Resized"

	// MachinesCreatedV1Beta1Condition reports whether a DockerMachine exists for each instance.
	MachinesCreatedV1Beta1Condition clusterv1.ConditionType = "MachinesCreated"
)
