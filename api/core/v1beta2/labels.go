package v1beta2

// Labels.
const (
	// ClusterNameLabel is the name of the Cluster that an object belongs to. It is on every object of a Cluster,
	// providers' included, and on its Secrets.
	ClusterNameLabel = "cluster.x-k8s.io/cluster-name"

	// ProviderNameLabel holds the manifest label of the provider that a component or CRD is part of, such as
	// "infrastructure-docker".
	ProviderNameLabel = "cluster.x-k8s.io/provider"

	// WatchLabel assigns an object to the managers whose --watch-filter is the label's value.
	WatchLabel = "cluster.x-k8s.io/watch-filter"

	// InterruptibleLabel is set on the Node of a machine that its infrastructure may terminate at any time.
	InterruptibleLabel = "cluster.x-k8s.io/interruptible"

	// MachineControlPlaneLabel is on control plane Machines and their objects; presence counts.
	MachineControlPlaneLabel = "cluster.x-k8s.io/control-plane"

	// MachineControlPlaneNameLabel holds the name of the control plane object a Machine belongs to, or a hash of the name
	// if that is not a valid label value.
	MachineControlPlaneNameLabel = "cluster.x-k8s.io/control-plane-name"

	// MachineSetNameLabel holds the name of the MachineSet a Machine belongs to, or a hash of the name if that is not a
	// valid label value.
	MachineSetNameLabel = "cluster.x-k8s.io/set-name"

	// MachineDeploymentNameLabel holds the name of the MachineDeployment a Machine or MachineSet belongs to.
	MachineDeploymentNameLabel = "cluster.x-k8s.io/deployment-name"

	// MachinePoolNameLabel holds the name of the MachinePool a Machine belongs to, or a hash of the name if that is not a
	// valid label value.
	MachinePoolNameLabel = "cluster.x-k8s.io/pool-name"

	// MachineDeploymentUniqueLabel distinguishes the MachineSets of a MachineDeployment, and their Machines.
	MachineDeploymentUniqueLabel = "machine-template-hash"

	// ClusterTopologyOwnedLabel is on every object that was created from a topology; presence counts.
	ClusterTopologyOwnedLabel = "topology.cluster.x-k8s.io/owned"

	// ClusterTopologyMachineDeploymentNameLabel is the name of a MachineDeployment in the topology; on it, its templates,
	// MachineSets and Machines.
	ClusterTopologyMachineDeploymentNameLabel = "topology.cluster.x-k8s.io/deployment-name"

	// ClusterTopologyMachinePoolNameLabel is the name of a MachinePool in the topology; on it and on its bootstrap and
	// infrastructure objects.
	ClusterTopologyMachinePoolNameLabel = "topology.cluster.x-k8s.io/pool-name"

	// AggregateToManagerLabel, with value "true", on a ClusterRole grants its rules to the core manager, so that it may
	// use a provider's objects.
	AggregateToManagerLabel = "cluster.x-k8s.io/aggregate-to-manager"
)

// Prefixes of the labels that are kept in sync from a Machine to its Node: keys whose part before the slash equals
// NodeRoleLabelPrefix, or equals or is a subdomain of one of the two domains.
const (
	// NodeRoleLabelPrefix is the prefix of labels for the roles of a Node.
	NodeRoleLabelPrefix = "node-role.kubernetes.io"
	// NodeRestrictionLabelDomain is the domain of labels that a kubelet cannot give its own Node.
	NodeRestrictionLabelDomain = "node-restriction.kubernetes.io"
	// ManagedNodeLabelDomain is the domain of Node labels that belong to Cluster API.
	ManagedNodeLabelDomain = "node.cluster.x-k8s.io"
)
