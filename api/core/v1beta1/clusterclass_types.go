package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// VariableDefinitionFromInline is the origin of variables that the ClusterClass itself defines, as opposed to those
// discovered from an external patch, whose origin is the patch's name.
const VariableDefinitionFromInline = "inline"

// ClusterClassSpec is the common definition of clusters of a class.
type ClusterClassSpec struct {
	// availabilityGates are further conditions of the Cluster that must be healthy for it to be available. Clusters
	// can override them.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	AvailabilityGates []ClusterAvailabilityGate `json:"availabilityGates,omitempty"`

	// infrastructure refers to the template of the infrastructure object.
	// +optional
	Infrastructure LocalObjectTemplate `json:"infrastructure,omitempty"`

	// infrastructureNamingStrategy defines the name of the infrastructure object.
	// +optional
	InfrastructureNamingStrategy *InfrastructureNamingStrategy `json:"infrastructureNamingStrategy,omitempty"`

	// controlPlane describes the control plane.
	// +optional
	ControlPlane ControlPlaneClass `json:"controlPlane,omitempty"`

	// workers lists the classes of worker groups that a cluster of this class may have.
	// +optional
	Workers WorkersClass `json:"workers,omitempty"`

	// variables can be set per cluster and used in patches.
	// +optional
	Variables []ClusterClassVariable `json:"variables,omitempty"`

	// patches change the templates for each cluster, in the order of the list.
	// +optional
	Patches []ClusterClassPatch `json:"patches,omitempty"`

	// upgrade defines how Kubernetes is upgraded by several minor versions.
	// +optional
	Upgrade ClusterClassUpgrade `json:"upgrade,omitempty,omitzero"`

	// kubernetesVersions are the Kubernetes versions that clusters of the class may have, in ascending order and without a
	// gap between minor versions. An upgrade by several minor versions passes through the highest one of each. When unset,
	// all versions are allowed, and upgrades by one minor version.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	KubernetesVersions []string `json:"kubernetesVersions,omitempty"`
}

// InfrastructureNamingStrategy defines the names of infrastructure objects.
type InfrastructureNamingStrategy struct {
	// template is a Go text template of the name. It can use .cluster.name and .random, five random characters. A name
	// longer than 63 characters is truncated to 58, and five random ones are appended. When unset, "{{ .cluster.name
	// }}-{{ .random }}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Template *string `json:"template,omitempty"`
}

// ClusterClassUpgrade defines how Kubernetes is upgraded by several minor versions.
type ClusterClassUpgrade = clusterv1beta2.ClusterClassUpgrade

// ClusterClassUpgradeExternal delegates the plan of upgrades to an extension.
type ClusterClassUpgradeExternal = clusterv1beta2.ClusterClassUpgradeExternal

// LocalObjectTemplate refers to a template object.
type LocalObjectTemplate struct {
	// ref names a template object, whose kind ends in Template, in the namespace of the class.
	Ref *corev1.ObjectReference `json:"ref"`
}

// ControlPlaneClass describes the control plane of clusters of a class.
type ControlPlaneClass struct {
	// metadata is set on the control plane object, and on its machines if machineInfrastructure is set. The topology of a
	// Cluster can add to it and override it.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty"`

	// LocalObjectTemplate refers to the template of the control plane object.
	LocalObjectTemplate `json:",inline"`

	// machineInfrastructure refers to the template of control plane machines, for providers that have machines.
	// +optional
	MachineInfrastructure *LocalObjectTemplate `json:"machineInfrastructure,omitempty"`

	// machineHealthCheck, if set, defines a health check of the control plane machines. Requires machineInfrastructure.
	// +optional
	MachineHealthCheck *MachineHealthCheckClass `json:"machineHealthCheck,omitempty"`

	// taints are set on the Nodes. Clusters can override them. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// readinessGates are further conditions of a Machine that must be healthy for it to be ready. Clusters can
	// override them.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`

	// namingStrategy defines the name of the control plane object.
	// +optional
	NamingStrategy *ControlPlaneClassNamingStrategy `json:"namingStrategy,omitempty"`

	// nodeDrainTimeout limits how long draining a Node may take, unless the Cluster overrides it. When unset or 0, there
	// is no limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from a Node, unless the Cluster overrides it. When
	// unset or 0, there is no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried, unless the Cluster overrides it. When
	// unset, 10s; 0 means no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`
}

// ControlPlaneClassNamingStrategy defines the names of control plane objects.
type ControlPlaneClassNamingStrategy struct {
	// template is a Go text template of the name. It can use .cluster.name and .random, five random characters. A name
	// longer than 63 characters is truncated to 58, and five random ones are appended. When unset, "{{ .cluster.name
	// }}-{{ .random }}".
	// +optional
	Template *string `json:"template,omitempty"`
}

// WorkersClass lists the classes of worker groups.
type WorkersClass struct {
	// machineDeployments are the classes of MachineDeployments, with unique names.
	// +optional
	MachineDeployments []MachineDeploymentClass `json:"machineDeployments,omitempty"`

	// machinePools are the classes of MachinePools, with unique names.
	// +optional
	MachinePools []MachinePoolClass `json:"machinePools,omitempty"`
}

// MachineDeploymentClass is a class of worker groups that are MachineDeployments.
type MachineDeploymentClass struct {
	// class is the name by which Clusters refer to this class.
	Class string `json:"class"`

	// template refers to the templates of the group's machines.
	Template MachineDeploymentClassTemplate `json:"template"`

	// machineHealthCheck, if set, defines a health check of the machines.
	// +optional
	MachineHealthCheck *MachineHealthCheckClass `json:"machineHealthCheck,omitempty"`

	// failureDomain is where machines are placed, unless the Cluster overrides it.
	// +optional
	FailureDomain *string `json:"failureDomain,omitempty"`

	// taints are set on the Nodes. Clusters can override them. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// readinessGates are further conditions of a Machine that must be healthy for it to be ready. Clusters can
	// override them.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`

	// namingStrategy defines the names of the MachineDeployments.
	// +optional
	NamingStrategy *MachineDeploymentClassNamingStrategy `json:"namingStrategy,omitempty"`

	// nodeDrainTimeout limits how long draining a Node may take, unless the Cluster overrides it. When unset or 0, there
	// is no limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from a Node, unless the Cluster overrides it. When
	// unset or 0, there is no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried, unless the Cluster overrides it. When
	// unset, 10s; 0 means no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// minReadySeconds is how many seconds a Node must be ready to count as available, unless the Cluster overrides it.
	// When unset, 0.
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// strategy is how machines are replaced, unless the Cluster overrides it.
	// +optional
	Strategy *MachineDeploymentStrategy `json:"strategy,omitempty"`
}

// MachineDeploymentClassTemplate refers to the templates of the machines of a MachineDeployment class.
type MachineDeploymentClassTemplate struct {
	// metadata is set on the MachineDeployment and its machines. The topology of a Cluster can add to it and override it.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty"`

	// bootstrap refers to the template of the machines' bootstrap configuration.
	Bootstrap LocalObjectTemplate `json:"bootstrap"`

	// infrastructure refers to the template of the machines' infrastructure.
	Infrastructure LocalObjectTemplate `json:"infrastructure"`
}

// MachineDeploymentClassNamingStrategy defines the names of MachineDeployments of a class.
type MachineDeploymentClassNamingStrategy struct {
	// template is a Go text template of the name. It can use .cluster.name, .machineDeployment.topologyName and .random,
	// five random characters. A name longer than 63 characters is truncated to 58, and five random ones are appended.
	// When unset, "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}".
	// +optional
	Template *string `json:"template,omitempty"`
}

// MachinePoolClass is a class of worker groups that are MachinePools.
type MachinePoolClass struct {
	// class is the name by which Clusters refer to this class.
	Class string `json:"class"`

	// template refers to the templates of the pool.
	Template MachinePoolClassTemplate `json:"template"`

	// failureDomains is where machines are placed, unless the Cluster overrides it.
	// +optional
	FailureDomains []string `json:"failureDomains,omitempty"`

	// taints are set on the Nodes. Clusters can override them. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// namingStrategy defines the names of the MachinePools.
	// +optional
	NamingStrategy *MachinePoolClassNamingStrategy `json:"namingStrategy,omitempty"`

	// nodeDrainTimeout limits how long draining a Node may take, unless the Cluster overrides it. When unset or 0, there
	// is no limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits the wait for volumes to detach from a Node, unless the Cluster overrides it. When
	// unset or 0, there is no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deleting the Node object is retried, unless the Cluster overrides it. When
	// unset, 10s; 0 means no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// minReadySeconds is how many seconds a Node must be ready to count as available, unless the Cluster overrides it.
	// When unset, 0.
	// +optional
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// MachinePoolClassTemplate refers to the templates of a MachinePool class.
type MachinePoolClassTemplate struct {
	// metadata is set on the MachinePool and its machines. The topology of a Cluster can add to it and override it.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty"`

	// bootstrap refers to the template of the pool's bootstrap configuration.
	Bootstrap LocalObjectTemplate `json:"bootstrap"`

	// infrastructure refers to the template of the pool's infrastructure.
	Infrastructure LocalObjectTemplate `json:"infrastructure"`
}

// MachinePoolClassNamingStrategy defines the names of MachinePools of a class.
type MachinePoolClassNamingStrategy struct {
	// template is a Go text template of the name. It can use .cluster.name, .machinePool.topologyName and .random, five
	// random characters. A name longer than 63 characters is truncated to 58, and five random ones are appended. When
	// unset, "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}".
	// +optional
	Template *string `json:"template,omitempty"`
}

// ClusterClassStatus is the observed state of a class.
type ClusterClassStatus struct {
	// variables are all variables that clusters of the class may set, those defined here and those discovered from
	// external patches.
	// +optional
	Variables []ClusterClassStatusVariable `json:"variables,omitempty"`

	// conditions are the current conditions, set by the controllers.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *ClusterClassV1Beta2Status `json:"v1beta2,omitempty"`
}

// ClusterClassV1Beta2Status is the part of the status of a class that v1beta2 added.
type ClusterClassV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterClassStatusVariable is one variable with all of its definitions.
type ClusterClassStatusVariable struct {
	// name is the name of the variable.
	Name string `json:"name"`

	// definitionsConflict is true if the definitions differ; Clusters must then specify which one to use.
	// +optional
	DefinitionsConflict bool `json:"definitionsConflict"`

	// definitions has one entry per origin of a definition.
	Definitions []ClusterClassStatusVariableDefinition `json:"definitions"`
}

// ClusterClassStatusVariableDefinition is the definition of a variable by one origin.
type ClusterClassStatusVariableDefinition struct {
	// from is "inline" for the class itself, or the name of the patch whose extension defined the variable.
	From string `json:"from"`

	// required is true when a Cluster must have a value for the variable.
	Required bool `json:"required"`

	// metadata is for tools, such as forms that are generated from the variables.
	// +optional
	Metadata ClusterClassVariableMetadata `json:"metadata,omitempty"`

	// schema is the schema of values.
	Schema VariableSchema `json:"schema"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterclasses,shortName=cc,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ClusterClass is a common definition from which many Clusters can be created, and kept consistent.
type ClusterClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterClassSpec   `json:"spec,omitempty"`
	Status ClusterClassStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the ClusterClass.
func (c *ClusterClass) GetConditions() Conditions { return c.Status.Conditions }

// SetConditions replaces the conditions of the ClusterClass.
func (c *ClusterClass) SetConditions(conditions Conditions) { c.Status.Conditions = conditions }

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (c *ClusterClass) GetV1Beta2Conditions() []metav1.Condition {
	if c.Status.V1Beta2 == nil {
		return nil
	}
	return c.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (c *ClusterClass) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if c.Status.V1Beta2 == nil {
		c.Status.V1Beta2 = &ClusterClassV1Beta2Status{}
	}
	c.Status.V1Beta2.Conditions = conditions
}

// +kubebuilder:object:root=true

// ClusterClassList is a list of ClusterClasses.
type ClusterClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterClass `json:"items"`
}
