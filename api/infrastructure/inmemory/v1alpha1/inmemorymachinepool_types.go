package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachinePoolFinalizer blocks the deletion of an InMemoryMachinePool until its machines are gone.
const MachinePoolFinalizer = "inmemorymachinepool.infrastructure.cluster.x-k8s.io"

// InMemoryMachinePoolSpec is the desired state of a pool.
type InMemoryMachinePoolSpec struct {
	// template describes each machine.
	// +optional
	Template InMemoryMachinePoolMachineTemplate `json:"template,omitempty"`

	// replicas is how many machines an autoscaler of the simulated cloud wants the pool to have. It is only used if the MachinePool
	// has the annotation cluster.x-k8s.io/replicas-managed-by, and is then written into spec.replicas of the MachinePool.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// providerIDList holds the identities of the machines; set by the provider.
	// +optional
	ProviderIDList []string `json:"providerIDList,omitempty"`
}

// InMemoryMachinePoolMachineTemplate describes each machine of a pool.
type InMemoryMachinePoolMachineTemplate struct {
	// behaviour of the simulation; when unset, everything starts immediately.
	// +optional
	Behaviour *InMemoryMachineBehaviour `json:"behaviour,omitempty"`
}

// InMemoryMachinePoolStatus is the observed state of a pool.
type InMemoryMachinePoolStatus struct {
	// ready is true once every machine is.
	// +optional
	Ready bool `json:"ready"`

	// initialization has what ready is in contract v1beta1, for contract v1beta2: the CustomResourceDefinitions are in it if they have label
	// cluster.x-k8s.io/v1beta2.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// replicas is the number of machines.
	// +optional
	Replicas int32 `json:"replicas"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// infrastructureMachineKind is the kind of the objects that represent the machines, InMemoryMachine.
	// +optional
	InfrastructureMachineKind string `json:"infrastructureMachineKind,omitempty"`

	// conditions are the current conditions.
	// +optional
	Conditions clusterv1beta1.Conditions `json:"conditions,omitempty"`
}

// InMemoryMachinePool is a group of identical machines that are simulated.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=inmemorymachinepools,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description="Number of machines"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.ready",description="Whether the pool is ready"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type InMemoryMachinePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InMemoryMachinePoolSpec   `json:"spec,omitempty"`
	Status InMemoryMachinePoolStatus `json:"status,omitempty"`
}

// GetV1Beta1Conditions returns the conditions of the status.
func (p *InMemoryMachinePool) GetV1Beta1Conditions() clusterv1.Conditions {
	return conditionsOf(p.Status.Conditions)
}

// SetV1Beta1Conditions replaces the conditions of the status.
func (p *InMemoryMachinePool) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	p.Status.Conditions = stored(conditions)
}

// InMemoryMachinePoolList is a list of InMemoryMachinePools.
//
// +kubebuilder:object:root=true
type InMemoryMachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InMemoryMachinePool `json:"items"`
}

// InMemoryMachinePoolTemplateSpec wraps the template.
type InMemoryMachinePoolTemplateSpec struct {
	// template is the template of InMemoryMachinePools.
	Template InMemoryMachinePoolTemplateResource `json:"template"`
}

// InMemoryMachinePoolTemplateResource is the template of InMemoryMachinePools.
type InMemoryMachinePoolTemplateResource struct {
	// metadata holds the labels and annotations of every InMemoryMachinePool.
	// +optional
	ObjectMeta clusterv1beta1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every InMemoryMachinePool.
	Spec InMemoryMachinePoolSpec `json:"spec"`
}

// InMemoryMachinePoolTemplate is the template from which a ClusterClass creates InMemoryMachinePools.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=inmemorymachinepooltemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type InMemoryMachinePoolTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec InMemoryMachinePoolTemplateSpec `json:"spec,omitempty"`
}

// InMemoryMachinePoolTemplateList is a list of InMemoryMachinePoolTemplates.
//
// +kubebuilder:object:root=true
type InMemoryMachinePoolTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InMemoryMachinePoolTemplate `json:"items"`
}
