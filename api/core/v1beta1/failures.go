package v1beta1

// ClusterStatusError names a class of problem of a Cluster that retrying does not mend.
type ClusterStatusError string

const (
	// InvalidConfigurationClusterError means that the spec, or an object it refers to, is wrong.
	InvalidConfigurationClusterError ClusterStatusError = "InvalidConfiguration"
	// UnsupportedChangeClusterError means that the spec was changed in a way that cannot be followed.
	UnsupportedChangeClusterError ClusterStatusError = "UnsupportedChange"
	// CreateClusterError means that creating something for the Cluster failed.
	CreateClusterError ClusterStatusError = "CreateError"
	// UpdateClusterError means that updating something of the Cluster failed.
	UpdateClusterError ClusterStatusError = "UpdateError"
	// DeleteClusterError means that deleting something of the Cluster failed.
	DeleteClusterError ClusterStatusError = "DeleteError"
)

// MachineStatusError names a class of problem of a Machine that retrying does not mend.
type MachineStatusError string

const (
	// InvalidConfigurationMachineError means that the spec, or an object it refers to, is wrong.
	InvalidConfigurationMachineError MachineStatusError = "InvalidConfiguration"
	// UnsupportedChangeMachineError means that the spec was changed in a way that cannot be followed.
	UnsupportedChangeMachineError MachineStatusError = "UnsupportedChange"
	// InsufficientResourcesMachineError means that the infrastructure has no room, or a quota is used up.
	InsufficientResourcesMachineError MachineStatusError = "InsufficientResources"
	// CreateMachineError means that creating the host, or something it needs, failed.
	CreateMachineError MachineStatusError = "CreateError"
	// UpdateMachineError means that updating the host failed, or that it is gone without having been deleted from here.
	UpdateMachineError MachineStatusError = "UpdateError"
	// DeleteMachineError means that deleting the host failed.
	DeleteMachineError MachineStatusError = "DeleteError"
	// JoinClusterTimeoutMachineError means that the host was made but did not become a Node in time.
	JoinClusterTimeoutMachineError MachineStatusError = "JoinClusterTimeoutError"
)

// MachineSetStatusError names a class of problem of a MachineSet that retrying does not mend.
type MachineSetStatusError string

// InvalidConfigurationMachineSetError means that the spec, or an object it refers to, is wrong.
const InvalidConfigurationMachineSetError MachineSetStatusError = "InvalidConfiguration"

// MachinePoolStatusFailure names a class of problem of a MachinePool that retrying does not mend.
type MachinePoolStatusFailure string

// InvalidConfigurationMachinePoolError means that the spec, or an object it refers to, is wrong.
const InvalidConfigurationMachinePoolError MachinePoolStatusFailure = "InvalidConfiguration"
