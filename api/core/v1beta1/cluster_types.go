package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ClusterSpec is the desired state of a cluster.
type ClusterSpec struct {
	// paused stops all controllers from acting on the cluster and on every object that belongs to it.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// clusterNetwork sets the cluster's network ranges, DNS domain and API server port.
	// +optional
	ClusterNetwork *ClusterNetwork `json:"clusterNetwork,omitempty"`

	// controlPlaneEndpoint is the endpoint of the cluster's API server. Unless set by the user, it is copied once from
	// the infrastructure object.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty"`

	// controlPlaneRef references the control plane provider's object. Unset if the user manages control plane machines
	// individually, and until the topology controller has created the object.
	// +optional
	ControlPlaneRef *corev1.ObjectReference `json:"controlPlaneRef,omitempty"`

	// infrastructureRef references the infrastructure provider's object for infrastructure shared by the cluster's
	// machines.
	// +optional
	InfrastructureRef *corev1.ObjectReference `json:"infrastructureRef,omitempty"`

	// topology describes the whole cluster based on a ClusterClass, from which all of the cluster's objects derive.
	// Requires the feature gate ClusterTopology. Cannot be removed once set.
	// +optional
	Topology *Topology `json:"topology,omitempty"`

	// availabilityGates are further conditions of the Cluster that must be healthy for it to be available. When unset, those
	// of the class.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	AvailabilityGates []ClusterAvailabilityGate `json:"availabilityGates,omitempty"`
}

// ClusterAvailabilityGate is a condition that must be healthy for a cluster to be available.
type ClusterAvailabilityGate = clusterv1beta2.ClusterAvailabilityGate

// Topology describes a cluster as an instance of a ClusterClass.
type Topology struct {
	// class is the name of a ClusterClass.
	Class string `json:"class"`

	// classNamespace is the namespace of the ClusterClass. When unset, that of the Cluster. Templates are cloned from this
	// namespace to that of the Cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ClassNamespace string `json:"classNamespace,omitempty"`

	// version is the Kubernetes version of control plane and workers, such as v1.30.1; a missing "v" is prepended.
	Version string `json:"version"`

	// rolloutAfter exists for compatibility and has no effect.
	// +optional
	RolloutAfter *metav1.Time `json:"rolloutAfter,omitempty"`

	// controlPlane customizes the class's control plane for this cluster.
	// +optional
	ControlPlane ControlPlaneTopology `json:"controlPlane,omitempty"`

	// workers lists this cluster's groups of worker machines. When unset, there are none.
	// +optional
	Workers *WorkersTopology `json:"workers,omitempty"`

	// variables are the values of the class's variables for this cluster. Defaults of the class are added.
	// +optional
	Variables []ClusterVariable `json:"variables,omitempty"`
}

// ControlPlaneTopology customizes the control plane of a class for a cluster.
type ControlPlaneTopology struct {
	// metadata is added to the control plane object, and to its machines when the class defines machine infrastructure.
	// It takes precedence over the metadata of the class.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty"`

	// replicas is the number of control plane machines. When unset, the field is omitted from the control plane object,
	// whose kind must then support that.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// rollout is when machines are replaced, even without a change of the template.
	// +optional
	Rollout ControlPlaneTopologyRolloutSpec `json:"rollout,omitempty,omitzero"`

	// machineHealthCheck replaces the class's health check of control plane machines, or enables or disables it.
	// +optional
	MachineHealthCheck *MachineHealthCheckTopology `json:"machineHealthCheck,omitempty"`

	// nodeDrainTimeout limits how long draining a Node may take. When unset, the class decides; 0 means no limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from a Node. When unset, the class decides; 0 means
	// no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried after its machine is gone. When unset, the
	// class decides; 0 means no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// taints are set on the Nodes. When unset, the class decides. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// readinessGates are further conditions of a Machine that must be healthy for it to be ready. When unset, the class
	// decides.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`

	// variables override the cluster's variables for the control plane.
	// +optional
	Variables *ControlPlaneVariables `json:"variables,omitempty"`
}

// ControlPlaneTopologyRolloutSpec is when control plane machines are replaced.
type ControlPlaneTopologyRolloutSpec = clusterv1beta2.ControlPlaneTopologyRolloutSpec

// WorkersTopology lists the groups of worker machines of one cluster.
type WorkersTopology struct {
	// machineDeployments are the groups that are MachineDeployments.
	// +optional
	MachineDeployments []MachineDeploymentTopology `json:"machineDeployments,omitempty"`

	// machinePools are the groups that are MachinePools.
	// +optional
	MachinePools []MachinePoolTopology `json:"machinePools,omitempty"`
}

// MachineDeploymentTopology is one group of workers, an instance of a MachineDeployment class of the ClusterClass.
type MachineDeploymentTopology struct {
	// metadata is added to the MachineDeployment and its machines. It takes precedence over the metadata of the class.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty"`

	// class is the name of one of the ClusterClass's MachineDeployment classes.
	Class string `json:"class"`

	// name identifies the group within the cluster: unique, and valid as a label value. The MachineDeployment's own
	// name is generated from it.
	Name string `json:"name"`

	// version is the Kubernetes version of this group, at most that of the topology; a missing "v" is prepended. When unset, the group has
	// the version of the topology. To set it, use the present version; from then on, the group keeps it until it is raised. Requires
	// the feature gate ClusterTopologyWorkerVersionPinning.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// failureDomain is where the machines are placed. When unset, the class decides.
	// +optional
	FailureDomain *string `json:"failureDomain,omitempty"`

	// replicas is the number of machines. When unset, the field is managed externally, for example by an autoscaler.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// machineHealthCheck replaces the class's health check of these machines, or enables or disables it.
	// +optional
	MachineHealthCheck *MachineHealthCheckTopology `json:"machineHealthCheck,omitempty"`

	// nodeDrainTimeout limits how long draining a Node may take. When unset, the class decides; 0 means no limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from a Node. When unset, the class decides; 0 means
	// no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried after its machine is gone. When unset, the
	// class decides; 0 means no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// minReadySeconds is how many seconds a Node must be ready to count as available. When unset, the class decides.
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// taints are set on the Nodes. When unset, the class decides. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// readinessGates are further conditions of a Machine that must be healthy for it to be ready. When unset, the class
	// decides.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`

	// rollout is when machines are replaced, even without a change of the template.
	// +optional
	Rollout MachineDeploymentTopologyRolloutSpec `json:"rollout,omitempty,omitzero"`

	// strategy is how machines are replaced. When unset, the class decides.
	// +optional
	Strategy *MachineDeploymentStrategy `json:"strategy,omitempty"`

	// variables overrides the cluster's variables for this group.
	// +optional
	Variables *MachineDeploymentVariables `json:"variables,omitempty"`
}

// MachineDeploymentTopologyRolloutSpec is when the machines of a MachineDeployment are replaced.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentTopologyRolloutSpec struct {
	// after replaces, after this time, all machines created before it, even without a change of the template.
	// +optional
	After metav1.Time `json:"after,omitempty,omitzero"`
}

// MachineHealthCheckTopology is the health check of one group of machines of a cluster.
type MachineHealthCheckTopology struct {
	// enable false means no health check even if the class defines one; true requires that either the class or this field
	// defines one. When unset, there is a health check if there is a definition.
	// +optional
	Enable *bool `json:"enable,omitempty"`

	// MachineHealthCheckClass, if any of its fields is set, replaces the class's definition completely.
	MachineHealthCheckClass `json:",inline"`
}

// MachinePoolTopology is one pool of workers, an instance of a MachinePool class of the ClusterClass.
type MachinePoolTopology struct {
	// metadata is added to the MachinePool and its machines. It takes precedence over the metadata of the class.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty"`

	// class is the name of one of the ClusterClass's MachinePool classes.
	Class string `json:"class"`

	// name identifies the pool within the cluster: unique, and valid as a label value. The MachinePool's own name is
	// generated from it.
	Name string `json:"name"`

	// version is the Kubernetes version of this pool, at most that of the topology; a missing "v" is prepended. When unset, the pool has
	// the version of the topology. To set it, use the present version; from then on, the pool keeps it until it is raised. Requires
	// the feature gate ClusterTopologyWorkerVersionPinning.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// failureDomains is where the machines are placed. When unset, the class decides.
	// +optional
	FailureDomains []string `json:"failureDomains,omitempty"`

	// nodeDrainTimeout limits how long draining a Node may take. When unset, the class decides; 0 means no limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from a Node. When unset, the class decides; 0 means
	// no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried after its machine is gone. When unset, the
	// class decides; 0 means no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// minReadySeconds is how many seconds a Node must be ready to count as available. When unset, the class decides.
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// replicas is the number of machines. When unset, the field is managed externally, for example by an autoscaler.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// taints are set on the Nodes. When unset, the class decides. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// variables overrides the cluster's variables for this pool.
	// +optional
	Variables *MachinePoolVariables `json:"variables,omitempty"`
}

// ClusterVariable is the value of one variable of the ClusterClass.
type ClusterVariable struct {
	// name is the name of the variable.
	Name string `json:"name"`

	// definitionFrom selects the definition of the variable if the ClusterClass and external patches define it
	// differently: "inline" or the name of a patch. Empty if the definitions are equal.
	// +optional
	DefinitionFrom string `json:"definitionFrom,omitempty"`

	// value is any JSON value that the variable's schema accepts.
	Value apiextensionsv1.JSON `json:"value"`
}

// ControlPlaneVariables are the variables of the control plane.
type ControlPlaneVariables struct {
	// overrides take precedence over the cluster's values of the same variables.
	// +optional
	Overrides []ClusterVariable `json:"overrides,omitempty"`
}

// MachineDeploymentVariables are the variables of one MachineDeployment.
type MachineDeploymentVariables struct {
	// overrides take precedence over the cluster's values of the same variables.
	// +optional
	Overrides []ClusterVariable `json:"overrides,omitempty"`
}

// MachinePoolVariables are the variables of one MachinePool.
type MachinePoolVariables struct {
	// overrides take precedence over the cluster's values of the same variables.
	// +optional
	Overrides []ClusterVariable `json:"overrides,omitempty"`
}

// ClusterNetwork holds the network parameters of a cluster.
type ClusterNetwork struct {
	// apiServerPort is the port the API server listens on. When unset or 0, 6443.
	// +optional
	APIServerPort *int32 `json:"apiServerPort,omitempty"`

	// services holds the ranges of Service addresses.
	// +optional
	Services *NetworkRanges `json:"services,omitempty"`

	// pods holds the ranges of Pod addresses.
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

// APIEndpoint is the address of an API server.
type APIEndpoint struct {
	// host is a name or an IP address, without port. It is always written.
	// +optional
	Host string `json:"host"`

	// port is the TCP port. It is always written.
	// +optional
	Port int32 `json:"port"`
}

// FailureDomains are the failure domains of a cluster by name.
type FailureDomains map[string]FailureDomainSpec

// FailureDomainSpec describes one failure domain.
type FailureDomainSpec struct {
	// controlPlane is true when control plane machines may be placed here.
	// +optional
	ControlPlane bool `json:"controlPlane,omitempty"`

	// attributes are defined by the infrastructure provider.
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
}

// ClusterStatus is the observed state of a cluster.
type ClusterStatus struct {
	// failureDomains is copied from the infrastructure object.
	// +optional
	FailureDomains FailureDomains `json:"failureDomains,omitempty"`

	// failureReason is set after a failure that retries cannot fix; it is the class of the failure.
	// +optional
	FailureReason *ClusterStatusError `json:"failureReason,omitempty"`

	// failureMessage explains failureReason to users.
	// +optional
	FailureMessage *string `json:"failureMessage,omitempty"`

	// phase is the phase of the cluster's lifecycle: Pending, Provisioning, Provisioned, Deleting, Failed or Unknown. For
	// users; controllers read conditions.
	// +optional
	Phase string `json:"phase,omitempty"`

	// infrastructureReady is true once the infrastructure provider reports that it is ready.
	// +optional
	InfrastructureReady bool `json:"infrastructureReady"`

	// controlPlaneReady is true once the control plane can serve requests.
	// +optional
	ControlPlaneReady bool `json:"controlPlaneReady"`

	// conditions are the current conditions, set by the controllers.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *ClusterV1Beta2Status `json:"v1beta2,omitempty"`
}

// ClusterV1Beta2Status is the part of the status of a cluster that v1beta2 added.
type ClusterV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// controlPlane counts the control plane machines.
	// +optional
	ControlPlane *ClusterControlPlaneStatus `json:"controlPlane,omitempty"`

	// workers counts the worker machines.
	// +optional
	Workers *WorkersStatus `json:"workers,omitempty"`
}

// ClusterControlPlaneStatus counts the control plane machines of a cluster.
type ClusterControlPlaneStatus = clusterv1beta2.ClusterControlPlaneStatus

// WorkersStatus counts the worker machines of a cluster.
type WorkersStatus = clusterv1beta2.WorkersStatus

// UpgradePlanVersion is a Kubernetes version that an upgrade passes through.
type UpgradePlanVersion = clusterv1beta2.UpgradePlanVersion

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusters,shortName=cl,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="ClusterClass",type="string",JSONPath=".spec.topology.class",description="Class the Cluster is an instance of; empty without a topology"
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Where the Cluster is in its life"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.topology.version",description="Kubernetes version the topology asks for"

// Cluster is a managed Kubernetes cluster.
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
