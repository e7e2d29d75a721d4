package v1beta1

// ClusterStatusError is a class of terminal failure of a Cluster.
type ClusterStatusError string

const (
	// InvalidConfigurationClusterError means that the spec, or a referenced object, is invalid.
	InvalidConfigurationClusterError ClusterStatusError = "InvalidConfiguration"
	// UnsupportedChangeClusterError means that the spec was changed in an unsupported way.
	UnsupportedChangeClusterError ClusterStatusError = "UnsupportedChange"
	// CreateClusterError means that creating something for the Cluster failed.
	CreateClusterError ClusterStatusError = "CreateError"
	// UpdateClusterError means that updating something of the Cluster failed.
	UpdateClusterError ClusterStatusError = "UpdateError"
	// DeleteClusterError means that deleting something of the Cluster failed.
	DeleteClusterError ClusterStatusError = "DeleteError"
)

// MachineStatusError is a class of terminal failure of a Machine.
type MachineStatusError string

const (
	// InvalidConfigurationMachineError means that the spec, or a referenced object, is invalid.
	InvalidConfigurationMachineError MachineStatusError = "InvalidConfiguration"
	// UnsupportedChangeMachineError means that the spec was changed in an unsupported way.
	UnsupportedChangeMachineError MachineStatusError = "UnsupportedChange"
	// InsufficientResourcesMachineError means that the infrastructure lacks capacity, or a quota is exceeded.
	InsufficientResourcesMachineError MachineStatusError = "InsufficientResources"
	// CreateMachineError means that creating the host, or something it needs, failed.
	CreateMachineError MachineStatusError = "CreateError"
	// UpdateMachineError means that updating the host failed, or that it was deleted externally.
	UpdateMachineError MachineStatusError = "UpdateError"
	// DeleteMachineError means that deleting the host failed.
	DeleteMachineError MachineStatusError = "DeleteError"
	// JoinClusterTimeoutMachineError means that the host was created but did not become a Node in time.
	JoinClusterTimeoutMachineError MachineStatusError = "JoinClusterTimeoutError"
)

// MachineSetStatusError is a class of terminal failure of a MachineSet.
type MachineSetStatusError string

// InvalidConfigurationMachineSetError means that the spec, or a referenced object, is invalid.
const InvalidConfigurationMachineSetError MachineSetStatusError = "InvalidConfiguration"

// MachinePoolStatusFailure is a class of terminal failure of a MachinePool.
type MachinePoolStatusFailure string

// InvalidConfigurationMachinePoolError means that the spec, or a referenced object, is invalid.
const InvalidConfigurationMachinePoolError MachinePoolStatusFailure = "InvalidConfiguration"
