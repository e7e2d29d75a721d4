package v1beta2

// Conditions of clusters besides those of all kinds; Ready is their summary. Their reasons, if true, are those of all kinds.
const (
	// LoadBalancerAvailableCondition of DockerCluster, and of DevCluster with backend docker, reports whether the load
	// balancer's container runs.
	LoadBalancerAvailableCondition = "LoadBalancerAvailable"

	// LoadBalancerProvisioningFailedReason: the container could not be created; it is retried.
	LoadBalancerProvisioningFailedReason = "LoadBalancerProvisioningFailed"

	// EndpointFailedReason of Ready, with backend inMemory: the workload API server cannot listen where
	// spec.controlPlaneEndpoint says.
	EndpointFailedReason = "EndpointFailed"
)

// PullingImageReason of LoadBalancerAvailableCondition and ContainerProvisionedCondition: the image of the container is not
// present, and is being pulled.
const PullingImageReason = "PullingImage"

// Conditions of DockerMachine, and of DevMachine with backend docker, besides those of all kinds; Ready is their summary.
const (
	// ContainerProvisionedCondition reports whether the machine's container runs.
	ContainerProvisionedCondition = "ContainerProvisioned"

	// LoadingImagesReason: the images of preLoadImages are being copied into the container.
	LoadingImagesReason = "LoadingImages"

	// ContainerProvisioningFailedReason: the container could not be created; it is retried.
	ContainerProvisioningFailedReason = "ContainerProvisioningFailed"

	// ContainerDeletedReason: the container of a provisioned machine disappeared.
	ContainerDeletedReason = "ContainerDeleted"

	// BootstrapExecSucceededCondition reports whether the bootstrap data ran to its end in the container.
	BootstrapExecSucceededCondition = "BootstrapExecSucceeded"

	// BootstrapSucceededReason: the bootstrap data ran to its end.
	BootstrapSucceededReason = "BootstrapSucceeded"

	// BootstrappingReason: the bootstrap data is running.
	BootstrappingReason = "Bootstrapping"

	// BootstrapFailedReason: the bootstrap data failed; it is retried.
	BootstrapFailedReason = "BootstrapFailed"
)

// Conditions of DevMachine with backend inMemory besides those of all kinds. Ready summarizes the first two, and for a control
// plane machine all four.
const (
	// VMProvisionedCondition reports whether the machine itself has started.
	VMProvisionedCondition = "VMProvisioned"

	// NodeProvisionedCondition reports whether the machine's Node exists in the workload cluster.
	NodeProvisionedCondition = "NodeProvisioned"

	// EtcdProvisionedCondition reports whether the etcd member of a control plane machine has started.
	EtcdProvisionedCondition = "EtcdProvisioned"

	// APIServerProvisionedCondition reports whether the API server of a control plane machine has started.
	APIServerProvisionedCondition = "APIServerProvisioned"

	// WaitingForStartupTimeoutReason of these: the simulated start takes the time that the backend asks for.
	WaitingForStartupTimeoutReason = "WaitingForStartupTimeout"

	// KubeadmFailedReason of these: kubeadm, as it is simulated, does not succeed on the machine; the message says why.
	KubeadmFailedReason = "KubeadmFailed"
)

// Conditions of pools besides those of all kinds.
const (
	// ReplicasReadyCondition reports whether every instance is ready.
	ReplicasReadyCondition = "ReplicasReady"

	// ResizedCondition reports whether the number of instances is the number asked for.
	ResizedCondition = "Resized"

	// MachinesCreatedCondition reports whether a machine object exists for each instance.
	MachinesCreatedCondition = "MachinesCreated"
)
