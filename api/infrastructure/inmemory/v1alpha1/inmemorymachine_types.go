package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineFinalizer blocks the deletion of an InMemoryMachine until its simulated resources are gone.
const MachineFinalizer = "inmemorymachine.infrastructure.cluster.x-k8s.io"

// InMemoryMachineSpec is the desired state of a machine.
type InMemoryMachineSpec struct {
	// providerID is the machine's identity, `in-memory://<name>`; set by the provider.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// failureDomain is the failure domain that the machine is in, if its provider chose one: that of the Machine has precedence.
	// InMemoryMachinePools set it, and the Machine gets it.
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`

	// behaviour of the simulation; when unset, everything starts immediately.
	// +optional
	Behaviour *InMemoryMachineBehaviour `json:"behaviour,omitempty"`
}

// InMemoryMachineBehaviour is the behavior of the parts of a simulated machine.
type InMemoryMachineBehaviour struct {
	// vm is the machine itself.
	// +optional
	VM *InMemoryVMBehaviour `json:"vm,omitempty"`

	// node is the machine's Node, which starts after the machine itself.
	// +optional
	Node *InMemoryNodeBehaviour `json:"node,omitempty"`

	// apiServer of a control plane machine, which starts after the Node.
	// +optional
	APIServer *InMemoryAPIServerBehaviour `json:"apiServer,omitempty"`

	// etcd of a control plane machine, which starts after the Node.
	// +optional
	Etcd *InMemoryEtcdBehaviour `json:"etcd,omitempty"`
}

// InMemoryVMBehaviour is the behavior of the machine itself.
type InMemoryVMBehaviour struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// InMemoryNodeBehaviour is the behavior of a machine's Node.
type InMemoryNodeBehaviour struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// InMemoryAPIServerBehaviour is the behavior of an API server.
type InMemoryAPIServerBehaviour struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// InMemoryEtcdBehaviour is the behavior of an etcd member.
type InMemoryEtcdBehaviour struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// CommonProvisioningSettings is how long the start of a part takes: startupDuration, plus a random fraction of it, up to
// startupJitter.
type CommonProvisioningSettings struct {
	// startupDuration is the minimum time of the start.
	StartupDuration metav1.Duration `json:"startupDuration"`

	// startupJitter is the maximum random fraction of startupDuration to add, as a decimal number such as `0.2`; none
	// when unset.
	// +optional
	StartupJitter string `json:"startupJitter,omitempty"`
}

// InMemoryMachineStatus is the observed state of a machine.
type InMemoryMachineStatus struct {
	// ready is true once the machine itself has started.
	// +optional
	Ready bool `json:"ready"`

	// initialization has what ready is in contract v1beta1, for contract v1beta2: the CustomResourceDefinitions are in it if they have label
	// cluster.x-k8s.io/v1beta2.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// conditions are the current conditions.
	// +optional
	Conditions clusterv1beta1.Conditions `json:"conditions,omitempty"`
}

// InMemoryMachine is a simulated machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=inmemorymachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".metadata.ownerReferences[?(@.kind==\"Machine\")].name",description="Machine that owns this object"
// +kubebuilder:printcolumn:name="ProviderID",type="string",JSONPath=".spec.providerID",description="Identity of the machine"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.ready",description="Whether the machine is ready"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type InMemoryMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InMemoryMachineSpec   `json:"spec,omitempty"`
	Status InMemoryMachineStatus `json:"status,omitempty"`
}

// GetV1Beta1Conditions returns the conditions of the status.
func (m *InMemoryMachine) GetV1Beta1Conditions() clusterv1.Conditions {
	return conditionsOf(m.Status.Conditions)
}

// SetV1Beta1Conditions replaces the conditions of the status.
func (m *InMemoryMachine) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	m.Status.Conditions = stored(conditions)
}

// InMemoryMachineList is a list of InMemoryMachines.
//
// +kubebuilder:object:root=true
type InMemoryMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InMemoryMachine `json:"items"`
}

// InMemoryMachineTemplateSpec wraps the template.
type InMemoryMachineTemplateSpec struct {
	// template is the template of InMemoryMachines.
	Template InMemoryMachineTemplateResource `json:"template"`
}

// InMemoryMachineTemplateResource is the template of InMemoryMachines.
type InMemoryMachineTemplateResource struct {
	// metadata holds the labels and annotations of every InMemoryMachine.
	// +optional
	ObjectMeta clusterv1beta1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every InMemoryMachine.
	Spec InMemoryMachineSpec `json:"spec"`
}

// InMemoryMachineTemplateStatus describes the machines of a template.
type InMemoryMachineTemplateStatus struct {
	// capacity is the capacity of every Node of these machines. The cluster autoscaler reads it to scale from zero. The provider
	// sets it unless it is set.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// InMemoryMachineTemplate is cloned into one InMemoryMachine per machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=inmemorymachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type InMemoryMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec InMemoryMachineTemplateSpec `json:"spec,omitempty"`
	// +optional
	Status InMemoryMachineTemplateStatus `json:"status,omitempty"`
}

// InMemoryMachineTemplateList is a list of InMemoryMachineTemplates.
//
// +kubebuilder:object:root=true
type InMemoryMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InMemoryMachineTemplate `json:"items"`
}
