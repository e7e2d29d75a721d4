package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// DevMachinePoolFinalizer blocks the deletion of a DevMachinePool until its machines are gone.
const DevMachinePoolFinalizer = "devmachinepool.infrastructure.cluster.x-k8s.io"

// DevMachinePoolSpec is the desired state of a pool.
type DevMachinePoolSpec struct {
	// providerID is the pool's identity, `docker:////<cluster>-dmp-<pool>`; set by the provider.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// providerIDList holds the identities of the instances; set by the provider.
	// +optional
	ProviderIDList []string `json:"providerIDList,omitempty"`

	// backend is what each instance is.
	// +optional
	Backend DevMachinePoolBackendSpec `json:"backend,omitempty,omitzero"`
}

// DevMachinePoolBackendSpec is what each instance of a pool is. There is no backend in memory.
type DevMachinePoolBackendSpec struct {
	// docker is for containers.
	// +optional
	Docker *DockerMachinePoolMachineTemplate `json:"docker,omitempty"`
}

// DevMachinePoolStatus is the observed state of a pool.
type DevMachinePoolStatus struct {
	// conditions are the current conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what was achieved once; controllers rely on it, conditions are for users.
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
	Instances []DevMachinePoolInstanceStatus `json:"instances,omitempty"`

	// infrastructureMachineKind is the kind of the objects that represent the instances, DevMachine.
	// +optional
	InfrastructureMachineKind string `json:"infrastructureMachineKind,omitempty"`
}

// DevMachinePoolInstanceStatus is the observed state of an instance of a pool.
type DevMachinePoolInstanceStatus struct {
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
}

// DevMachinePool is a group of identical machines for development and tests.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=devmachinepools,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DevMachinePool struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DevMachinePoolSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status DevMachinePoolStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the status.
func (p *DevMachinePool) GetConditions() []metav1.Condition {
	return p.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (p *DevMachinePool) SetConditions(conditions []metav1.Condition) {
	p.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns nil: the kind is not in v1beta1, whose conditions have no place in its status.
func (*DevMachinePool) GetV1Beta1Conditions() clusterv1.Conditions {
	return nil
}

// SetV1Beta1Conditions has no effect. See GetV1Beta1Conditions.
func (*DevMachinePool) SetV1Beta1Conditions(clusterv1.Conditions) {}

// DevMachinePoolList is a list of DevMachinePools.
//
// +kubebuilder:object:root=true
type DevMachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevMachinePool `json:"items"`
}

// DevMachinePoolTemplateSpec wraps the template.
type DevMachinePoolTemplateSpec struct {
	// template is the template of DevMachinePools; its spec is immutable.
	// +required
	Template DevMachinePoolTemplateResource `json:"template"`
}

// DevMachinePoolTemplateResource is the template of DevMachinePools.
type DevMachinePoolTemplateResource struct {
	// metadata holds the labels and annotations of every DevMachinePool.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of every DevMachinePool.
	// +required
	Spec DevMachinePoolSpec `json:"spec"`
}

// DevMachinePoolTemplate is the template from which a ClusterClass creates DevMachinePools.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=devmachinepooltemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DevMachinePoolTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DevMachinePoolTemplateSpec `json:"spec,omitempty,omitzero"`
}

// DevMachinePoolTemplateList is a list of DevMachinePoolTemplates.
//
// +kubebuilder:object:root=true
type DevMachinePoolTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevMachinePoolTemplate `json:"items"`
}
