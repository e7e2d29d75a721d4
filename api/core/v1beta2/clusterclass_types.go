package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// VariableDefinitionFromInline is the origin of variables that the ClusterClass itself defines, as opposed to those
// discovered from an external patch, whose origin is the patch's name.
const VariableDefinitionFromInline = "inline"

// ClusterClassSpec is the common definition of clusters of a class.
type ClusterClassSpec struct {
	// availabilityGates are further conditions of a Cluster that must be healthy for it to be available, unless the Cluster
	// overrides them.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	AvailabilityGates []ClusterAvailabilityGate `json:"availabilityGates,omitempty"`

	// infrastructure describes the infrastructure object.
	// +required
	Infrastructure InfrastructureClass `json:"infrastructure,omitempty,omitzero"`

	// controlPlane describes the control plane.
	// +required
	ControlPlane ControlPlaneClass `json:"controlPlane,omitempty,omitzero"`

	// workers lists the classes of worker groups that a cluster of this class may have.
	// +optional
	Workers WorkersClass `json:"workers,omitempty,omitzero"`

	// variables can be set per cluster and used in patches.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Variables []ClusterClassVariable `json:"variables,omitempty"`

	// patches change the templates for each cluster, in the order of the list.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
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

// InfrastructureClass describes the infrastructure object of clusters of a class.
type InfrastructureClass struct {
	// templateRef references the template of the infrastructure object.
	// +required
	TemplateRef ClusterClassTemplateReference `json:"templateRef,omitempty,omitzero"`

	// naming defines the name of the infrastructure object.
	// +optional
	Naming InfrastructureClassNamingSpec `json:"naming,omitempty,omitzero"`
}

// InfrastructureClassNamingSpec defines the names of infrastructure objects.
// +kubebuilder:validation:MinProperties=1
type InfrastructureClassNamingSpec struct {
	// template is a Go text template of the name. It can use .cluster.name and .random, five random characters. A name
	// longer than 63 characters is truncated to 58, and five random ones are appended. When unset, "{{ .cluster.name }}-{{
	// .random }}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Template string `json:"template,omitempty"`
}

// ClusterClassTemplateReference references a template in the namespace of the class. Its kind ends in Template.
type ClusterClassTemplateReference struct {
	// kind is the kind of the template: letters, digits and hyphens.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`
	Kind string `json:"kind,omitempty"`

	// name is the name of the template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// apiVersion is the API group and version of the template, such as infrastructure.cluster.x-k8s.io/v1beta1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion,omitempty"`
}

// IsDefined reports whether any field of the reference is set.
func (r *ClusterClassTemplateReference) IsDefined() bool {
	return r != nil && *r != ClusterClassTemplateReference{}
}

// ToObjectReference returns the reference with a namespace.
func (r *ClusterClassTemplateReference) ToObjectReference(namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: namespace, Name: r.Name}
}

// GroupVersionKind returns group, version and kind of the template.
func (r *ClusterClassTemplateReference) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// ControlPlaneClass describes the control plane of clusters of a class.
type ControlPlaneClass struct {
	// metadata is set on the control plane object, and on its machines if machineInfrastructure is set. The topology of a
	// Cluster can add to it and override it.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty,omitzero"`

	// templateRef references the template of the control plane object.
	// +required
	TemplateRef ClusterClassTemplateReference `json:"templateRef,omitempty,omitzero"`

	// machineInfrastructure references the template of control plane machines, for providers that have machines.
	// +optional
	MachineInfrastructure ControlPlaneClassMachineInfrastructureTemplate `json:"machineInfrastructure,omitempty,omitzero"`

	// healthCheck defines a health check of the control plane machines, unless the Cluster overrides it. Requires
	// machineInfrastructure.
	// +optional
	HealthCheck ControlPlaneClassHealthCheck `json:"healthCheck,omitempty,omitzero"`

	// naming defines the name of the control plane object.
	// +optional
	Naming ControlPlaneClassNamingSpec `json:"naming,omitempty,omitzero"`

	// deletion limits the steps of deleting machines, unless the Cluster overrides it.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints are set on the Nodes, unless the Cluster overrides them. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// readinessGates are further conditions of a Machine that must be healthy for it to be ready, unless the Cluster
	// overrides them.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`
}

// ControlPlaneClassMachineInfrastructureTemplate references the template of control plane machines.
type ControlPlaneClassMachineInfrastructureTemplate struct {
	// templateRef references the template of the machines' infrastructure.
	// +required
	TemplateRef ClusterClassTemplateReference `json:"templateRef,omitempty,omitzero"`
}

// ControlPlaneClassNamingSpec defines the names of control plane objects.
// +kubebuilder:validation:MinProperties=1
type ControlPlaneClassNamingSpec struct {
	// template is a Go text template of the name. It can use .cluster.name and .random, five random characters. A name
	// longer than 63 characters is truncated to 58, and five random ones are appended. When unset, "{{ .cluster.name }}-{{
	// .random }}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Template string `json:"template,omitempty"`
}

// ControlPlaneClassHealthCheck defines a health check of control plane machines.
// +kubebuilder:validation:MinProperties=1
type ControlPlaneClassHealthCheck struct {
	// checks define when a machine is unhealthy: any of them is sufficient.
	// +optional
	Checks MachineHealthCheckChecks `json:"checks,omitempty,omitzero"`

	// remediation is how unhealthy machines are remediated, and when not.
	// +optional
	Remediation MachineHealthCheckRemediation `json:"remediation,omitempty,omitzero"`
}

// IsDefined reports whether there is a health check.
func (h *ControlPlaneClassHealthCheck) IsDefined() bool {
	return h != nil && (isSet(h.Checks) || isSet(h.Remediation))
}

// WorkersClass lists the classes of worker groups.
// +kubebuilder:validation:MinProperties=1
type WorkersClass struct {
	// machineDeployments are the classes of MachineDeployments.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=class
	MachineDeployments []MachineDeploymentClass `json:"machineDeployments,omitempty"`

	// machinePools are the classes of MachinePools.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=class
	MachinePools []MachinePoolClass `json:"machinePools,omitempty"`
}

// MachineDeploymentClass is a class of worker groups that are MachineDeployments.
type MachineDeploymentClass struct {
	// metadata is set on the MachineDeployment and its machines. The topology of a Cluster can add to it and override it.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty,omitzero"`

	// class is the name by which Clusters refer to this class.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Class string `json:"class,omitempty"`

	// bootstrap references the template of the machines' bootstrap configuration.
	// +required
	Bootstrap MachineDeploymentClassBootstrapTemplate `json:"bootstrap,omitempty,omitzero"`

	// infrastructure references the template of the machines' infrastructure.
	// +required
	Infrastructure MachineDeploymentClassInfrastructureTemplate `json:"infrastructure,omitempty,omitzero"`

	// healthCheck defines a health check of the machines, unless the Cluster overrides it.
	// +optional
	HealthCheck MachineDeploymentClassHealthCheck `json:"healthCheck,omitempty,omitzero"`

	// failureDomain is where machines are placed, unless the Cluster overrides it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// naming defines the names of the MachineDeployments.
	// +optional
	Naming MachineDeploymentClassNamingSpec `json:"naming,omitempty,omitzero"`

	// deletion is which machines are deleted, and limits the steps of that, unless the Cluster overrides it.
	// +optional
	Deletion MachineDeploymentClassMachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints are set on the Nodes, unless the Cluster overrides them. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// minReadySeconds is how many seconds a machine must be ready to count as available, unless the Cluster overrides it.
	// When unset, 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// readinessGates are further conditions of a Machine that must be healthy for it to be ready, unless the Cluster
	// overrides them.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=conditionType
	ReadinessGates []MachineReadinessGate `json:"readinessGates,omitempty"`

	// rollout is how machines are replaced, unless the Cluster overrides it.
	// +optional
	Rollout MachineDeploymentClassRolloutSpec `json:"rollout,omitempty,omitzero"`
}

// MachineDeploymentClassBootstrapTemplate references the template of bootstrap configurations.
type MachineDeploymentClassBootstrapTemplate struct {
	// templateRef references the template of the machines' bootstrap configuration.
	// +required
	TemplateRef ClusterClassTemplateReference `json:"templateRef,omitempty,omitzero"`
}

// MachineDeploymentClassInfrastructureTemplate references the template of infrastructure machines.
type MachineDeploymentClassInfrastructureTemplate struct {
	// templateRef references the template of the machines' infrastructure.
	// +required
	TemplateRef ClusterClassTemplateReference `json:"templateRef,omitempty,omitzero"`
}

// MachineDeploymentClassHealthCheck defines a health check of the machines of a MachineDeployment.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentClassHealthCheck struct {
	// checks define when a machine is unhealthy: any of them is sufficient.
	// +optional
	Checks MachineHealthCheckChecks `json:"checks,omitempty,omitzero"`

	// remediation is how unhealthy machines are remediated, and when not.
	// +optional
	Remediation MachineDeploymentHealthCheckRemediation `json:"remediation,omitempty,omitzero"`
}

// IsDefined reports whether there is a health check.
func (h *MachineDeploymentClassHealthCheck) IsDefined() bool {
	return h != nil && (isSet(h.Checks) || isSet(h.Remediation))
}

// MachineDeploymentHealthCheckRemediation is how unhealthy machines of a MachineDeployment are remediated, and when not.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentHealthCheckRemediation struct {
	// maxInFlight is how many unhealthy machines, or which percentage of replicas rounded up, may be replaced at the same
	// time. When unset, there is no limit.
	// +optional
	MaxInFlight *intstr.IntOrString `json:"maxInFlight,omitempty"`

	// triggerIf limits remediation to times when only some machines are unhealthy. When unset, there is no limit.
	// +optional
	TriggerIf MachineHealthCheckRemediationTriggerIf `json:"triggerIf,omitempty,omitzero"`

	// templateRef references a template from which a remediation request is created for each unhealthy machine, for an
	// external controller. When unset, the owner of the machine replaces it.
	// +optional
	TemplateRef MachineHealthCheckRemediationTemplateReference `json:"templateRef,omitempty,omitzero"`
}

// MachineDeploymentClassNamingSpec defines the names of MachineDeployments of a class.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentClassNamingSpec struct {
	// template is a Go text template of the name. It can use .cluster.name, .machineDeployment.topologyName and .random,
	// five random characters. A name longer than 63 characters is truncated to 58, and five random ones are appended. When
	// unset, "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Template string `json:"template,omitempty"`
}

// MachineDeploymentClassMachineDeletionSpec is which machines of a MachineDeployment are deleted first, and limits the
// steps of that.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentClassMachineDeletionSpec struct {
	// order is which machines are deleted first when there are too many: Random, Newest or Oldest. When unset, Random.
	// +optional
	Order MachineSetDeletionOrder `json:"order,omitempty"`

	// nodeDrainTimeoutSeconds limits how long draining a Node may take, in seconds. When unset or 0, there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`

	// nodeVolumeDetachTimeoutSeconds limits the wait for volumes to detach from a Node, in seconds. When unset or 0, there
	// is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds,omitempty"`

	// nodeDeletionTimeoutSeconds limits how long deleting the Node object is retried once the machine is gone, in seconds.
	// When unset, 10; 0 means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// MachineDeploymentClassRolloutSpec is how machines are replaced.
// +kubebuilder:validation:MinProperties=1
type MachineDeploymentClassRolloutSpec struct {
	// strategy is how machines are replaced. When unset, RollingUpdate.
	// +optional
	Strategy MachineDeploymentRolloutStrategy `json:"strategy,omitempty,omitzero"`
}

// MachinePoolClass is a class of worker groups that are MachinePools.
type MachinePoolClass struct {
	// metadata is set on the MachinePool and its machines. The topology of a Cluster can add to it and override it.
	// +optional
	Metadata ObjectMeta `json:"metadata,omitempty,omitzero"`

	// class is the name by which Clusters refer to this class.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Class string `json:"class,omitempty"`

	// bootstrap references the template of the pool's bootstrap configuration.
	// +required
	Bootstrap MachinePoolClassBootstrapTemplate `json:"bootstrap,omitempty,omitzero"`

	// infrastructure references the template of the pool's infrastructure.
	// +required
	Infrastructure MachinePoolClassInfrastructureTemplate `json:"infrastructure,omitempty,omitzero"`

	// failureDomains is where machines are placed, unless the Cluster overrides it.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	FailureDomains []string `json:"failureDomains,omitempty"`

	// naming defines the names of the MachinePools.
	// +optional
	Naming MachinePoolClassNamingSpec `json:"naming,omitempty,omitzero"`

	// deletion limits the steps of deleting machines, unless the Cluster overrides it.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints are set on the Nodes, unless the Cluster overrides them. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []MachineTaint `json:"taints,omitempty"`

	// minReadySeconds is how many seconds a machine must be ready to count as available, unless the Cluster overrides it.
	// When unset, 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// MachinePoolClassBootstrapTemplate references the template of bootstrap configurations.
type MachinePoolClassBootstrapTemplate struct {
	// templateRef references the template of the pool's bootstrap configuration.
	// +required
	TemplateRef ClusterClassTemplateReference `json:"templateRef,omitempty,omitzero"`
}

// MachinePoolClassInfrastructureTemplate references the template of the infrastructure of pools.
type MachinePoolClassInfrastructureTemplate struct {
	// templateRef references the template of the pool's infrastructure.
	// +required
	TemplateRef ClusterClassTemplateReference `json:"templateRef,omitempty,omitzero"`
}

// MachinePoolClassNamingSpec defines the names of MachinePools of a class.
// +kubebuilder:validation:MinProperties=1
type MachinePoolClassNamingSpec struct {
	// template is a Go text template of the name. It can use .cluster.name, .machinePool.topologyName and .random, five
	// random characters. A name longer than 63 characters is truncated to 58, and five random ones are appended. When unset,
	// "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Template string `json:"template,omitempty"`
}

// ClusterClassUpgrade defines how Kubernetes is upgraded by several minor versions.
// +kubebuilder:validation:MinProperties=1
type ClusterClassUpgrade struct {
	// external delegates the plan of upgrades to an extension. Requires the feature gate RuntimeSDK.
	// +optional
	External ClusterClassUpgradeExternal `json:"external,omitempty,omitzero"`
}

// ClusterClassUpgradeExternal delegates the plan of upgrades to an extension.
// +kubebuilder:validation:MinProperties=1
type ClusterClassUpgradeExternal struct {
	// generateUpgradePlanExtension is the extension, as <handler>.<ExtensionConfig>, that returns the versions an upgrade
	// passes through.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	GenerateUpgradePlanExtension string `json:"generateUpgradePlanExtension,omitempty"`
}

// ClusterClassStatus is the observed state of a class.
// +kubebuilder:validation:MinProperties=1
type ClusterClassStatus struct {
	// conditions are the current conditions: VariablesReady, RefVersionsUpToDate and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// variables are all variables that clusters of the class may set, those defined here and those discovered from external
	// patches.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	Variables []ClusterClassStatusVariable `json:"variables,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *ClusterClassDeprecatedStatus `json:"deprecated,omitempty"`
}

// ClusterClassDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type ClusterClassDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *ClusterClassV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// ClusterClassV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type ClusterClassV1Beta1DeprecatedStatus struct {
	// conditions are the conditions of v1beta1, with severities.
	// +optional
	Conditions Conditions `json:"conditions,omitempty"`
}

// ClusterClassStatusVariable is one variable with all of its definitions.
type ClusterClassStatusVariable struct {
	// name is the name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// definitionsConflict is true if the definitions differ.
	// +optional
	DefinitionsConflict *bool `json:"definitionsConflict,omitempty"`

	// definitions has one entry per origin of a definition.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Definitions []ClusterClassStatusVariableDefinition `json:"definitions,omitempty"`
}

// ClusterClassStatusVariableDefinition is the definition of a variable by one origin.
type ClusterClassStatusVariableDefinition struct {
	// from is "inline" for the class itself, or the name of the patch whose extension defined the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	From string `json:"from,omitempty"`

	// required is true when a Cluster must have a value for the variable.
	// +required
	Required *bool `json:"required,omitempty"`

	// deprecatedV1Beta1Metadata is for tools, such as forms that are generated from the variables. Deprecated: it is removed
	// together with v1beta1; use x-metadata of the schema.
	// +optional
	DeprecatedV1Beta1Metadata ClusterClassVariableMetadata `json:"deprecatedV1Beta1Metadata,omitempty,omitzero"`

	// schema is the schema of values.
	// +required
	Schema VariableSchema `json:"schema,omitempty,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterclasses,shortName=cc,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether the ClusterClass is paused",priority=10
// +kubebuilder:printcolumn:name="Variables Ready",type="string",JSONPath=`.status.conditions[?(@.type=="VariablesReady")].status`,description="Whether all variables of the class are known"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ClusterClass is a common definition from which many Clusters can be created, and kept consistent.
type ClusterClass struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec ClusterClassSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status ClusterClassStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the ClusterClass.
func (c *ClusterClass) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the ClusterClass.
func (c *ClusterClass) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (c *ClusterClass) GetV1Beta1Conditions() Conditions {
	if c.Status.Deprecated == nil || c.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return c.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (c *ClusterClass) SetV1Beta1Conditions(conditions Conditions) {
	if len(conditions) == 0 && len(c.GetV1Beta1Conditions()) == 0 {
		return
	}
	if c.Status.Deprecated == nil {
		c.Status.Deprecated = &ClusterClassDeprecatedStatus{}
	}
	if c.Status.Deprecated.V1Beta1 == nil {
		c.Status.Deprecated.V1Beta1 = &ClusterClassV1Beta1DeprecatedStatus{}
	}
	c.Status.Deprecated.V1Beta1.Conditions = conditions
}

// +kubebuilder:object:root=true

// ClusterClassList is a list of ClusterClasses.
type ClusterClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterClass `json:"items"`
}
