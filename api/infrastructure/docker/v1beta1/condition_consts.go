package v1beta1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"

// LoadBalancerAvailableCondition of DockerCluster reports whether the load balancer's container runs; Ready is its
// summary.
const LoadBalancerAvailableCondition clusterv1.ConditionType = "LoadBalancerAvailable"

// LoadBalancerProvisioningFailedReason (severity Warning) of LoadBalancerAvailableCondition: the container could not be made;
// it is retried.
const LoadBalancerProvisioningFailedReason = "LoadBalancerProvisioningFailed"

// PullingImageReason (severity Info) of LoadBalancerAvailableCondition and ContainerProvisionedCondition: the image of the container
// is not present, and is being pulled.
const PullingImageReason = "PullingImage"

// Conditions of DockerMachine; Ready summarizes both.
const (
	// ContainerProvisionedCondition reports whether the machine's container runs.
	ContainerProvisionedCondition clusterv1.ConditionType = "ContainerProvisioned"

	// BootstrapExecSucceededCondition reports whether the bootstrap data ran to its end in the container.
	BootstrapExecSucceededCondition clusterv1.ConditionType = "BootstrapExecSucceeded"
)

// Reasons of ContainerProvisionedCondition when it is false.
const (
	// WaitingForClusterInfrastructureReason (severity Info): the Cluster's infrastructure is not ready yet.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"

	// WaitingForControlPlaneAvailableReason (severity Info): a worker waits for the first control plane machine.
	WaitingForControlPlaneAvailableReason = "WaitingForControlPlaneAvailable"

	// WaitingForBootstrapDataReason (severity Info): the bootstrap data does not exist yet.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"

	// LoadingImagesReason (severity Info): the images of spec.preLoadImages are being copied into the container.
	LoadingImagesReason = "LoadingImages"

	// ContainerProvisioningFailedReason (severity Warning): the container could not be made; it is retried.
	ContainerProvisioningFailedReason = "ContainerProvisioningFailed"

	// ContainerDeletedReason (severity Error): the container of a provisioned machine disappeared.
	ContainerDeletedReason = "ContainerDeleted"
)

// Reasons of BootstrapExecSucceededCondition when it is false.
const (
	// BootstrappingReason (severity Info): the bootstrap data is running.
	BootstrappingReason = "Bootstrapping"

	// BootstrapFailedReason (severity Warning): the bootstrap data failed; it is retried.
	BootstrapFailedReason = "BootstrapFailed"
)

// Conditions of DockerMachinePool.
const (
	// ReplicasReadyCondition reports whether every instance is ready.
	ReplicasReadyCondition clusterv1.ConditionType = "ReplicasReady"

	// ResizedCondition reports whether the number of instances is the number asked for.
	ResizedCondition clusterv1.ConditionType = "Resized"

	// MachinesCreatedCondition reports whether a DockerMachine exists for each instance.
	MachinesCreatedCondition clusterv1.ConditionType = "MachinesCreated"
)
