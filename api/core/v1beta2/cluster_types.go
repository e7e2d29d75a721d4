package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterFinalizer blocks the deletion of a Cluster until everything that belongs to it is gone.
const ClusterFinalizer = "cluster.cluster.x-k8s.io"

// ClusterSpec is the desired state of a cluster.
// +kubebuilder:validation:MinProperties=1
type ClusterSpec struct {
	// paused stops all controllers from acting on the cluster and on every object that belongs to it.
	// +optional
	Paused *bool `json:"paused,omitempty"`

	// clusterNetwork sets the cluster's network ranges, DNS domain and API server port.
	// +optional
	ClusterNetwork ClusterNetwork `json:"clusterNetwork,omitempty,omitzero"`

	// controlPlaneEndpoint is the endpoint of the cluster's API server. Unless set by the user, it is copied once from the
	// infrastructure object or the control plane object.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// controlPlaneRef references the control plane provider's object. Unset if the user manages control plane machines
	// individually, and until the topology controller has created the object.
	// +optional
	ControlPlaneRef ContractVersionedObjectReference `json:"controlPlaneRef,omitempty,omitzero"`

	// infrastructureRef references the infrastructure provider's object for infrastructure shared by the cluster's machines.
	// +optional
	InfrastructureRef ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	// topology describes the whole cluster based on a ClusterClass, from which all of the cluster's objects derive. Requires
	// the feature gate ClusterTopology. Cannot be removed once set.
	// +optional
	Topology Topology `json:"topology,omitempty,omitzero"`

	// availabilityGates are further conditions of the Cluster that must be healthy for it to be available. When unset, those
	// of the class.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	AvailabilityGates []ClusterAvailabilityGate `json:"availabilityGates,omitempty"`
}

// ClusterAvailabilityGate is a condition that must be healthy for a cluster to be available.
type ClusterAvailabilityGate struct {
	// conditionType is the type of a condition of the Cluster. A missing condition counts as unknown.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	ConditionType string `json:"conditionType,omitempty"`

	// polarity is Positive when the status True is healthy, and Negative when it is False. When unset, Positive.
	// +optional
	// +kubebuilder:validation:Enum=Positive;Negative
	Polarity ConditionPolarity `json:"polarity,omitempty"`
}

// Topology describes a cluster as an instance of a ClusterClass.
type Topology struct {
	// classRef references the class of the cluster.
	// +required
	ClassRef ClusterClassRef `json:"classRef,omitempty,omitzero"`

	// version is the Kubernetes version of control plane and workers, such as v1.34.1; a missing "v" is prepended.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// controlPlane customizes the class's control plane for this cluster.
	// +optional
	ControlPlane ControlPlaneTopology `json:"controlPlane,omitempty,omitzero"`

	// workers lists this cluster's groups of worker machines. When unset, there are none.
	// +optional
	Workers WorkersTopology `json:"workers,omitempty,omitzero"`

	// variables are the values of the class's variables for this cluster. Defaults of the class are added.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	Variables []ClusterVariable `json:"variables,omitempty"`
}

// IsDefined reports whether the cluster has a topology.
func (t *Topology) IsDefined() bool { return t != nil && isSet(*t) }

// ClusterClassRef references a ClusterClass.
type ClusterClassRef struct {
	// name is the name of the ClusterClass.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// namespace is the namespace of the ClusterClass. When unset, that of the Cluster. Templates are cloned from this
	// namespace to that of the Cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// ControlPlaneTopology customizes the control plane of a class for a cluster.
// +kubebuilder:validation:MinProperties=1
type ControlPlaneTopology struct {
	// metadata is added to the control plane object, and to its machines when the class defines machine infrastructure. It
	// takes precedence over the metadata of the class.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty,omitzero"`

	// replicas is the number of control plane machines. When unset, the field is omitted from the control plane object,
	// whose kind must then support that.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// rollout is when machines are replaced, even without a change of the template.
	// +optional
	Rollout ControlPlaneTopologyRolloutSpec `json:"rollout,omitempty,omitzero"`

	// healthCheck replaces the class's health check of control plane machines, or enables or disables it.
	// +optional
	HealthCheck ControlPlaneTopologyHealthCheck `json:"healthCheck,omitempty,omitzero"`

	// deletion limits the steps of deleting machines. When unset, the class decides.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

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
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`

	// variables override the cluster's variables for the control plane.
	// +optional
	Variables ControlPlaneVariables `json:"variables,omitempty,omitzero"`
}

// ControlPlaneTopologyRolloutSpec is when control plane machines are replaced.
// +kubebuilder:validation:MinProperties=1
type ControlPlaneTopologyRolloutSpec struct {
	// after replaces, after this time, all machines created before it, even without a change of the template.
	// +optional
	After metav1.Time `json:"after,omitempty,omitzero"`
}

// ControlPlaneTopologyHealthCheck is the health check of the control plane machines of a cluster.
// +kubebuilder:validation:MinProperties=1
type ControlPlaneTopologyHealthCheck struct {
	// enabled false means no health check even if the class defines one; true requires that either the class or this field
	// defines one. When unset, there is a health check if there is a definition.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// checks define when a machine is unhealthy: any of them is sufficient. Together with remediation, they replace the
	// class's definition completely.
	// +optional
	Checks MachineHealthCheckChecks `json:"checks,omitempty,omitzero"`

	// remediation is how unhealthy machines are remediated, and when not.
	// +optional
	Remediation MachineHealthCheckRemediation `json:"remediation,omitempty,omitzero"`
}

// IsDefined reports whether the health check replaces that of the class.
func (h *ControlPlaneTopologyHealthCheck) IsDefined() bool {
	return h != nil && (isSet(h.Checks) || isSet(h.Remediation))
}

// WorkersTopology lists the groups of worker machines of one cluster.
// +kubebuilder:validation:MinProperties=1
type WorkersTopology struct {
	// machineDeployments are the groups that are MachineDeployments.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2000
	// +listType=map
	// +listMapKey=name
	MachineDeployments []MachineDeploymentTopology `json:"machineDeployments,omitempty"`

	// machinePools are the groups that are MachinePools.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2000
	// +listType=map
	// +listMapKey=name
	MachinePools []MachinePoolTopology `json:"machinePools,omitempty"`
}

// MachineDeploymentTopology is one group of workers, an instance of a MachineDeployment class of the ClusterClass.
type MachineDeploymentTopology struct {
	// metadata is added to the MachineDeployment and its machines. It takes precedence over the metadata of the class.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty,omitzero"`

	// class is the name of one of the ClusterClass's MachineDeployment classes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Class string `json:"class,omitempty"`

	// name identifies the group within the cluster. The MachineDeployment's own name is generated from it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// version is the Kubernetes version of this group, at most that of the topology; a missing "v" is prepended. When unset, the group has
	// the version of the topology. To set it, use the present version; from then on, the group keeps it until it is raised. Requires
	// the feature gate ClusterTopologyWorkerVersionPinning.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// failureDomain is where the machines are placed. When unset, the class decides.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// replicas is the number of machines. When unset, the field is managed externally, for example by an autoscaler.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// healthCheck replaces the class's health check of these machines, or enables or disables it.
	// +optional
	HealthCheck MachineDeploymentTopologyHealthCheck `json:"healthCheck,omitempty,omitzero"`

	// deletion is which machines are deleted first, and limits the steps of that. When unset, the class decides.
	// +optional
	Deletion MachineDeploymentClassMachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints are set on the Nodes. When unset, the class decides. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// minReadySeconds is how many seconds a machine must be ready to count as available. When unset, the class decides.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// readinessGates are further conditions of a Machine that must be healthy for it to be ready. When unset, the class
	// decides.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`

	// rollout is when and how machines are replaced. When unset, the class decides.
	// +optional
	Rollout MachineDeploymentRolloutSpec `json:"rollout,omitempty,omitzero"`

	// variables overrides the cluster's variables for this group.
	// +optional
	Variables MachineDeploymentVariables `json:"variables,omitempty,omitzero"`
}

// MachineDeploymentTopologyHealthCheck is the health check of one group of machines of a cluster.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentTopologyHealthCheck struct {
	// enabled false means no health check even if the class defines one; true requires that either the class or this field
	// defines one. When unset, there is a health check if there is a definition.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// checks define when a machine is unhealthy: any of them is sufficient. Together with remediation, they replace the
	// class's definition completely.
	// +optional
	Checks MachineHealthCheckChecks `json:"checks,omitempty,omitzero"`

	// remediation is how unhealthy machines are remediated, and when not.
	// +optional
	Remediation MachineDeploymentHealthCheckRemediation `json:"remediation,omitempty,omitzero"`
}

// IsDefined reports whether the health check replaces that of the class.
func (h *MachineDeploymentTopologyHealthCheck) IsDefined() bool {
	return h != nil && (isSet(h.Checks) || isSet(h.Remediation))
}

// MachinePoolTopology is one pool of workers, an instance of a MachinePool class of the ClusterClass.
type MachinePoolTopology struct {
	// metadata is added to the MachinePool and its machines. It takes precedence over the metadata of the class.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty,omitzero"`

	// class is the name of one of the ClusterClass's MachinePool classes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Class string `json:"class,omitempty"`

	// name identifies the pool within the cluster. The MachinePool's own name is generated from it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// version is the Kubernetes version of this pool, at most that of the topology; a missing "v" is prepended. When unset, the pool has
	// the version of the topology. To set it, use the present version; from then on, the pool keeps it until it is raised. Requires
	// the feature gate ClusterTopologyWorkerVersionPinning.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// failureDomains is where the machines are placed. When unset, the class decides.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	FailureDomains []string `json:"failureDomains,omitempty"`

	// deletion limits the steps of deleting machines. When unset, the class decides.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints are set on the Nodes. When unset, the class decides. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// minReadySeconds is how many seconds a machine must be ready to count as available. When unset, the class decides.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// replicas is the number of machines. When unset, the field is managed externally, for example by an autoscaler.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// variables overrides the cluster's variables for this pool.
	// +optional
	Variables MachinePoolVariables `json:"variables,omitempty,omitzero"`
}

// ClusterNetwork holds the network parameters of a cluster.
// +kubebuilder:validation:MinProperties=1
type ClusterNetwork struct {
	// apiServerPort is the port the API server listens on. When unset, 6443.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	APIServerPort int32 `json:"apiServerPort,omitempty"`

	// services holds the ranges of Service addresses.
	// +optional
	Services NetworkRanges `json:"services,omitempty,omitzero"`

	// pods holds the ranges of Pod addresses.
	// +optional
	Pods NetworkRanges `json:"pods,omitempty,omitzero"`

	// serviceDomain is the DNS domain of Services. When unset, cluster.local.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceDomain string `json:"serviceDomain,omitempty"`
}

// NetworkRanges is a list of address ranges.
type NetworkRanges struct {
	// cidrBlocks are ranges in CIDR notation: at most one IPv4 and one IPv6.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=atomic
	CIDRBlocks []string `json:"cidrBlocks,omitempty"`
}

// APIEndpoint is the address of an API server.
// +kubebuilder:validation:MinProperties=1
type APIEndpoint struct {
	// host is a name or an IP address, without port.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Host string `json:"host,omitempty"`

	// port is the TCP port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// FailureDomain describes one failure domain of a cluster.
type FailureDomain struct {
	// name identifies the failure domain.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// controlPlane is true when control plane machines may be placed here.
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`

	// attributes are defined by the infrastructure provider.
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
}

// ClusterStatus is the observed state of a cluster.
// +kubebuilder:validation:MinProperties=1
type ClusterStatus struct {
	// conditions are the current conditions: Available, InfrastructureReady, ControlPlaneInitialized, ControlPlaneAvailable,
	// WorkersAvailable, RemoteConnectionProbe, TopologyReconciled, RollingOut, ScalingUp, ScalingDown, Remediating,
	// Deleting, Paused, and those that aggregate the conditions of machines.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is the progress of creating the cluster. The values never return to false.
	// +optional
	Initialization ClusterInitializationStatus `json:"initialization,omitempty,omitzero"`

	// controlPlane counts the control plane machines.
	// +optional
	ControlPlane *ClusterControlPlaneStatus `json:"controlPlane,omitempty"`

	// workers counts the worker machines.
	// +optional
	Workers *WorkersStatus `json:"workers,omitempty"`

	// failureDomains is copied from the infrastructure object.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`

	// phase is the phase of the cluster's lifecycle. For users; controllers read conditions.
	// +optional
	// +kubebuilder:validation:Enum=Pending;Provisioning;Provisioned;Deleting;Failed;Unknown
	Phase string `json:"phase,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *ClusterDeprecatedStatus `json:"deprecated,omitempty"`
}

// ClusterInitializationStatus is the progress of creating a cluster.
// +kubebuilder:validation:MinProperties=1
type ClusterInitializationStatus struct {
	// infrastructureProvisioned is true once the infrastructure provider reports that the cluster's infrastructure is
	// provisioned.
	// +optional
	InfrastructureProvisioned *bool `json:"infrastructureProvisioned,omitempty"`

	// controlPlaneInitialized is true once the control plane can serve requests.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// ClusterControlPlaneStatus counts the control plane machines of a cluster.
type ClusterControlPlaneStatus struct {
	// desiredReplicas is the desired number of control plane machines.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// replicas is the number of control plane machines.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// upToDateReplicas is how many of them have the condition UpToDate.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// readyReplicas is how many of them have the condition Ready.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many of them have the condition Available.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// versions is how many machines have which Kubernetes version, in ascending order.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Versions []StatusVersion `json:"versions,omitempty"`

	// upgradePlan are the versions that a pending upgrade still passes through, ending with its target.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	UpgradePlan []UpgradePlanVersion `json:"upgradePlan,omitempty"`
}

// WorkersStatus counts the worker machines of a cluster.
type WorkersStatus struct {
	// desiredReplicas is the desired number of worker machines.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// replicas is the number of worker machines.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// upToDateReplicas is how many of them have the condition UpToDate.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// readyReplicas is how many of them have the condition Ready.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many of them have the condition Available.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`

	// versions is how many machines have which Kubernetes version, in ascending order.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Versions []StatusVersion `json:"versions,omitempty"`

	// upgradePlan are the versions that a pending upgrade still passes through, ending with its target.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	UpgradePlan []UpgradePlanVersion `json:"upgradePlan,omitempty"`
}

// UpgradePlanVersion is a Kubernetes version that an upgrade passes through.
type UpgradePlanVersion struct {
	// version is the Kubernetes version.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
}

// ClusterDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type ClusterDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *ClusterV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// ClusterV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type ClusterV1Beta1DeprecatedStatus struct {
	// conditions are the conditions of v1beta1, with severities.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`

	// failureReason is the class of a failure that retries cannot fix, as copied from a provider. It has no effect.
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`

	// failureMessage explains failureReason to users.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	FailureMessage *string `json:"failureMessage,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusters,shortName=cl,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="ClusterClass",type="string",JSONPath=".spec.topology.classRef.name",description="Class of the Cluster; empty without a topology"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether the condition Available is True"
// +kubebuilder:printcolumn:name="CP Desired",type="integer",JSONPath=".status.controlPlane.desiredReplicas",description="Desired number of control plane machines"
// +kubebuilder:printcolumn:name="CP Current",type="integer",JSONPath=".status.controlPlane.replicas",description="Number of control plane machines",priority=10
// +kubebuilder:printcolumn:name="CP Ready",type="integer",JSONPath=".status.controlPlane.readyReplicas",description="Number of control plane machines whose condition Ready is True",priority=10
// +kubebuilder:printcolumn:name="CP Available",type="integer",JSONPath=".status.controlPlane.availableReplicas",description="Number of control plane machines whose condition Available is True"
// +kubebuilder:printcolumn:name="CP Up-to-date",type="integer",JSONPath=".status.controlPlane.upToDateReplicas",description="Number of control plane machines whose condition UpToDate is True"
// +kubebuilder:printcolumn:name="W Desired",type="integer",JSONPath=".status.workers.desiredReplicas",description="Desired number of worker machines"
// +kubebuilder:printcolumn:name="W Current",type="integer",JSONPath=".status.workers.replicas",description="Number of worker machines",priority=10
// +kubebuilder:printcolumn:name="W Ready",type="integer",JSONPath=".status.workers.readyReplicas",description="Number of worker machines whose condition Ready is True",priority=10
// +kubebuilder:printcolumn:name="W Available",type="integer",JSONPath=".status.workers.availableReplicas",description="Number of worker machines whose condition Available is True"
// +kubebuilder:printcolumn:name="W Up-to-date",type="integer",JSONPath=".status.workers.upToDateReplicas",description="Number of worker machines whose condition UpToDate is True"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether the Cluster is paused",priority=10
// +kubebuilder:printcolumn:name="Phase",type="string",JSONPath=".status.phase",description="Phase of the Cluster"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.topology.version",description="Kubernetes version of the topology"

// Cluster is a managed Kubernetes cluster.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec ClusterSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status ClusterStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// ClusterList is a list of Clusters.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
