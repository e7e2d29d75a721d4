package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterFinalizer keeps a Cluster until everything that belongs to it is gone.
const ClusterFinalizer = "cluster.cluster.x-k8s.io"

// ClusterSpec is what the user wants of a cluster.
type ClusterSpec struct {
	// paused stops all controllers from acting on the cluster and on every object that belongs to it.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// clusterNetwork sets the cluster's network ranges, DNS domain and API server port.
	// +optional
	ClusterNetwork *ClusterNetwork `json:"clusterNetwork,omitempty"`

	// controlPlaneEndpoint is where the cluster's API server is reached. Unless the user sets it, it is copied once
	// from the infrastructure object.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty"`

	// controlPlaneRef names the control plane provider's object. Unset when the user runs control plane machines one
	// by one, and until the topology controller has made the object.
	// +optional
	ControlPlaneRef *corev1.ObjectReference `json:"controlPlaneRef,omitempty"`

	// infrastructureRef names the infrastructure provider's object for what the machines of the cluster share.
	// +optional
	InfrastructureRef *corev1.ObjectReference `json:"infrastructureRef,omitempty"`

	// topology describes the whole cluster in terms of a ClusterClass; all of the cluster's objects then follow it.
	// Needs the feature gate ClusterTopology. Cannot be removed once set.
	// +optional
	Topology *Topology `json:"topology,omitempty"`
}

// Topology is a cluster described as one instance of a ClusterClass.
type Topology struct {
	// class is the name of a ClusterClass in the cluster's namespace.
	Class string `json:"class"`

	// version is the Kubernetes version of control plane and workers, such as v1.30.1; a missing "v" is put in front.
	Version string `json:"version"`

	// rolloutAfter is accepted and kept for compatibility; nothing acts on it.
	// +optional
	RolloutAfter *metav1.Time `json:"rolloutAfter,omitempty"`

	// controlPlane adapts the class's control plane to this cluster.
	// +optional
	ControlPlane ControlPlaneTopology `json:"controlPlane,omitempty"`

	// workers lists this cluster's groups of worker machines. When unset, there are none.
	// +optional
	Workers *WorkersTopology `json:"workers,omitempty"`

	// variables are the values of the class's variables for this cluster. Defaults of the class are filled in.
	// +optional
	Variables []ClusterVariable `json:"variables,omitempty"`
}

// ControlPlaneTopology adapts the control plane of a class to one cluster.
type ControlPlaneTopology struct {
	// metadata is added to the control plane object, and to its machines when the class defines machine
	// infrastructure. It wins over the metadata of the class.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty"`

	// replicas is the number of control plane machines. When unset, the field is left out of the control plane object,
	// which must then manage without.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// machineHealthCheck replaces the class's health check of control plane machines, or switches it on or off.
	// +optional
	MachineHealthCheck *MachineHealthCheckTopology `json:"machineHealthCheck,omitempty"`

	// nodeDrainTimeout limits how long draining a Node may take. When unset, the class decides; 0 is without limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from a Node. When unset, the class decides; 0 is
	// without limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried after its machine is gone. When unset,
	// the class decides; 0 is without limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`
}

// WorkersTopology lists the groups of worker machines of one cluster.
type WorkersTopology struct {
	// machineDeployments are the groups made as MachineDeployments.
	// +optional
	MachineDeployments []MachineDeploymentTopology `json:"machineDeployments,omitempty"`

	// machinePools are the groups made as MachinePools.
	// +optional
	MachinePools []MachinePoolTopology `json:"machinePools,omitempty"`
}

// MachineDeploymentTopology is one group of workers, an instance of a MachineDeployment class of the ClusterClass.
type MachineDeploymentTopology struct {
	// metadata is added to the MachineDeployment and its machines. It wins over the metadata of the class.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty"`

	// class names one of the ClusterClass's MachineDeployment classes.
	Class string `json:"class"`

	// name identifies the group within the cluster: unique, and valid as a label value. The MachineDeployment's own
	// name is generated from it.
	Name string `json:"name"`

	// failureDomain is where the machines are placed. When unset, the class decides.
	// +optional
	FailureDomain *string `json:"failureDomain,omitempty"`

	// replicas is the number of machines. When unset, the field is left to others, such as an autoscaler.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// machineHealthCheck replaces the class's health check of these machines, or switches it on or off.
	// +optional
	MachineHealthCheck *MachineHealthCheckTopology `json:"machineHealthCheck,omitempty"`

	// nodeDrainTimeout limits how long draining a Node may take. When unset, the class decides; 0 is without limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from a Node. When unset, the class decides; 0 is
	// without limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried after its machine is gone. When unset,
	// the class decides; 0 is without limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// minReadySeconds is how many seconds a Node must be ready to count as available. When unset, the class decides.
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// strategy says how machines are replaced by new ones. When unset, the class decides.
	// +optional
	Strategy *MachineDeploymentStrategy `json:"strategy,omitempty"`

	// variables gives this group other values of the cluster's variables.
	// +optional
	Variables *MachineDeploymentVariables `json:"variables,omitempty"`
}

// MachineHealthCheckTopology is the health check of one group of machines of a cluster.
type MachineHealthCheckTopology struct {
	// enable false means no health check even if the class defines one; true demands that either the class or this
	// field defines one. When unset, there is one exactly if there is a definition.
	// +optional
	Enable *bool `json:"enable,omitempty"`

	// MachineHealthCheckClass, if any of its fields is set, replaces the definition of the class as a whole.
	MachineHealthCheckClass `json:",inline"`
}

// MachinePoolTopology is one pool of workers, an instance of a MachinePool class of the ClusterClass.
type MachinePoolTopology struct {
	// metadata is added to the MachinePool and its machines. It wins over the metadata of the class.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty"`

	// class names one of the ClusterClass's MachinePool classes.
	Class string `json:"class"`

	// name identifies the pool within the cluster: unique, and valid as a label value. The MachinePool's own name is
	// generated from it.
	Name string `json:"name"`

	// failureDomains is where the machines are placed. When unset, the class decides.
	// +optional
	FailureDomains []string `json:"failureDomains,omitempty"`

	// nodeDrainTimeout limits how long draining a Node may take. When unset, the class decides; 0 is without limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from a Node. When unset, the class decides; 0 is
	// without limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried after its machine is gone. When unset,
	// the class decides; 0 is without limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// minReadySeconds is how many seconds a Node must be ready to count as available. When unset, the class decides.
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// replicas is the number of machines. When unset, the field is left to others, such as an autoscaler.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// variables gives this pool other values of the cluster's variables.
	// +optional
	Variables *MachinePoolVariables `json:"variables,omitempty"`
}

// ClusterVariable is the value of one variable of the ClusterClass.
type ClusterVariable struct {
	// name is the name of the variable.
	Name string `json:"name"`

	// definitionFrom says whose definition of the variable is meant when the ClusterClass and external patches define
	// it differently: "inline" or the name of a patch. Empty when the definitions agree.
	// +optional
	DefinitionFrom string `json:"definitionFrom,omitempty"`

	// value is any JSON value that the variable's schema accepts.
	Value apiextensionsv1.JSON `json:"value"`
}

// MachineDeploymentVariables are the values of variables that hold for one MachineDeployment only.
type MachineDeploymentVariables struct {
	// overrides win over the cluster's values of the same variables.
	// +optional
	Overrides []ClusterVariable `json:"overrides,omitempty"`
}

// MachinePoolVariables are the values of variables that hold for one MachinePool only.
type MachinePoolVariables struct {
	// overrides win over the cluster's values of the same variables.
	// +optional
	Overrides []ClusterVariable `json:"overrides,omitempty"`
}

// ClusterNetwork holds the network parameters of a cluster.
type ClusterNetwork struct {
	// apiServerPort is the port the API server listens on. When unset or 0, 6443.
	// +optional
	APIServerPort *int32 `json:"apiServerPort,omitempty"`

	// services holds the ranges that Service addresses are taken from.
	// +optional
	Services *NetworkRanges `json:"services,omitempty"`

	// pods holds the ranges that Pod addresses are taken from.
	// +optional
	Pods *NetworkRanges `json:"pods,omitempty"`

	// serviceDomain is the DNS domain of Services. When empty, cluster.local.
	// +optional
	ServiceDomain string `json:"serviceDomain,omitempty"`
}

// NetworkRanges is a list of address ranges.
type NetworkRanges struct {
	// cidrBlocks are ranges in CIDR notation: at most one IPv4 and one IPv6.
	CIDRBlocks []string `json:"cidrBlocks"`
}

// APIEndpoint is where an API server is reached.
type APIEndpoint struct {
	// host is a name or an IP address, without port.
	Host string `json:"host"`

	// port is the TCP port.
	Port int32 `json:"port"`
}

// FailureDomains are the failure domains of a cluster by name.
type FailureDomains map[string]FailureDomainSpec

// FailureDomainSpec describes one failure domain.
type FailureDomainSpec struct {
	// controlPlane is true when control plane machines may be placed here.
	// +optional
	ControlPlane bool `json:"controlPlane,omitempty"`

	// attributes are whatever else the infrastructure provider wants to tell.
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
}

// ClusterStatus is what was observed of a cluster.
type ClusterStatus struct {
	// failureDomains is copied from the infrastructure object.
	// +optional
	FailureDomains FailureDomains `json:"failureDomains,omitempty"`

	// failureReason is set when something went wrong that retrying does not mend; it names the class of problem.
	// +optional
	FailureReason *ClusterStatusError `json:"failureReason,omitempty"`

	// failureMessage explains failureReason to a person.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// phase sums up where the cluster is in its life: Pending, Provisioning, Provisioned, Deleting, Failed or Unknown.
	// For people; controllers read conditions.
	// +optional
	Phase string `json:"phase,omitempty"`

	// infrastructureReady is true once the infrastructure provider says so.
	// +optional
	InfrastructureReady bool `json:"infrastructureReady"`

	// controlPlaneReady is true once the control plane can serve requests.
	// +optional
	ControlPlaneReady bool `json:"controlPlaneReady"`

	// conditions are the current observations, set by the controllers.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`

	// observedGeneration is the newest metadata.generation that the controller has acted on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusters,shortName=cl,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="ClusterClass",type="string",JSONPath=".spec.topology.class",description="Class the Cluster is an instance of; empty without a topology"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Where the Cluster is in its life"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.topology.version",description="Kubernetes version the topology asks for"

// Cluster is one Kubernetes cluster that is managed from here.
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterSpec   `json:"spec,omitempty"`
	Status ClusterStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ClusterList is a list of Clusters.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
