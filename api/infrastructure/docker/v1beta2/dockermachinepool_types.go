package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachinePoolFinalizer blocks the deletion of a DockerMachinePool until its containers are gone.
const MachinePoolFinalizer = "dockermachinepool.infrastructure.cluster.x-k8s.io"

// DockerMachinePoolInstancesLabel marks the containers of a pool; its value is the pool's name.
const DockerMachinePoolInstancesLabel = "docker.cluster.x-k8s.io/machine-pool"

// DockerMachinePoolSpec is the desired state of a pool.
type DockerMachinePoolSpec struct {
	// template describes each instance.
	// +optional
	Template DockerMachinePoolMachineTemplate `json:"template,omitempty,omitzero"`

	// providerID is the pool's identity, `docker:////<cluster>-dmp-<pool>`; set by the provider.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// providerIDList holds the identities of the instances; set by the provider.
	// +optional
	ProviderIDList []string `json:"providerIDList,omitempty"`
}

// DockerMachinePoolMachineTemplate describes each instance of a pool whose machines are containers.
type DockerMachinePoolMachineTemplate struct {
	// customImage is the containers' image; by default it derives from the Kubernetes version.
	// +optional
	CustomImage string `json:"customImage,omitempty"`

	// preLoadImages are images copied from the host into each container, for use by its own runtime.
	// +optional
	PreLoadImages []string `json:"preLoadImages,omitempty"`

	// extraMounts are additional host paths mounted into each container.
	// +optional
	ExtraMounts []Mount `json:"extraMounts,omitempty"`
}

// DockerMachinePoolStatus is the observed state of a pool.
type DockerMachinePoolStatus struct {
	// conditions are the current conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what contract v1beta2 reads. Releases up to v1.14 have only ready.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// ready is true once every instance is.
	// +optional
	Ready bool `json:"ready"`

	// replicas is the number of instances.
	// +optional
	Replicas int32 `json:"replicas"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// instances of the pool.
	// +optional
	Instances []DockerMachinePoolInstanceStatus `json:"instances,omitempty"`

	// infrastructureMachineKind is the kind of the objects that represent the instances, DockerMachine.
	// +optional
	InfrastructureMachineKind string `json:"infrastructureMachineKind,omitempty"`

	// deprecated groups what goes with API version v1beta1.
	// +optional
	Deprecated *DeprecatedStatus `json:"deprecated,omitempty"`
}

// DockerMachinePoolInstanceStatus is the observed state of an instance of a pool.
type DockerMachinePoolInstanceStatus struct {
	// addresses of the instance.
	// +optional
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// instanceName is the name of the container.
	// +optional
	InstanceName string `json:"instanceName,omitempty"`

	// providerID is the container's identity.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// version of Kubernetes with which the instance was created.
	// +optional
	Version *string `json:"version,omitempty"`

	// ready is true once the container runs and its Node is known.
	// +optional
	Ready bool `json:"ready"`

	// bootstrapped is true once the bootstrap data succeeded.
	// +optional
	Bootstrapped bool `json:"bootstrapped,omitempty"`
}

// DockerMachinePool is a group of identical machines that are containers. Deprecated: use DevMachinePool.
//
// +kubebuilder:deprecatedversion
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockermachinepools,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerMachinePool struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DockerMachinePoolSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status DockerMachinePoolStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the status.
func (p *DockerMachinePool) GetConditions() []metav1.Condition {
	return p.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (p *DockerMachinePool) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns the conditions that clients of v1beta1 see.
func (p *DockerMachinePool) GetV1Beta1Conditions() clusterv1.Conditions {
	return v1beta1Conditions(p.Status.Deprecated)
}

// SetV1Beta1Conditions replaces the conditions that clients of v1beta1 see.
func (p *DockerMachinePool) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	setV1Beta1Conditions(&p.Status.Deprecated, conditions)
}

// DockerMachinePoolList is a list of DockerMachinePools.
//
// +kubebuilder:object:root=true
type DockerMachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DockerMachinePool `json:"items"`
}

// DockerMachinePoolTemplateSpec wraps the template.
type DockerMachinePoolTemplateSpec struct {
	// template is the template of DockerMachinePools; its spec is immutable.
	// +required
	Template DockerMachinePoolTemplateResource `json:"template"`
}

// DockerMachinePoolTemplateResource is the template of DockerMachinePools.
type DockerMachinePoolTemplateResource struct {
	// metadata holds the labels and annotations of every DockerMachinePool.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of every DockerMachinePool.
	// +required
	Spec DockerMachinePoolSpec `json:"spec"`
}

// DockerMachinePoolTemplate is the template from which a ClusterClass creates DockerMachinePools. Deprecated: use
// DevMachinePoolTemplate.
//
// +kubebuilder:deprecatedversion
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockermachinepooltemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerMachinePoolTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DockerMachinePoolTemplateSpec `json:"spec,omitempty,omitzero"`
}

// DockerMachinePoolTemplateList is a list of DockerMachinePoolTemplates.
//
// +kubebuilder:object:root=true
type DockerMachinePoolTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DockerMachinePoolTemplate `json:"items"`
}
