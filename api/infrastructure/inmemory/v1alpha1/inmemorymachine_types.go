package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// MachineFinalizer keeps an InMemoryMachine until its simulated resources are gone.
const MachineFinalizer = "inmemorymachine.infrastructure.cluster.x-k8s.io"

// InMemoryMachineSpec says what a machine shall be.
type InMemoryMachineSpec struct {
	// providerID is the machine's identity, `in-memory://<name>`; the provider fills it in.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// behaviour of the simulation; everything starts at once when unset.
	// +optional
	Behaviour *InMemoryMachineBehaviour `json:"behaviour,omitempty"`
}

// InMemoryMachineBehaviour says how the parts of a simulated machine behave.
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

// InMemoryVMBehaviour says how a machine itself behaves.
type InMemoryVMBehaviour struct {
	// provisioning says how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// InMemoryNodeBehaviour says how a machine's Node behaves.
type InMemoryNodeBehaviour struct {
	// provisioning says how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// InMemoryAPIServerBehaviour says how an API server behaves.
type InMemoryAPIServerBehaviour struct {
	// provisioning says how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// InMemoryEtcdBehaviour says how an etcd member behaves.
type InMemoryEtcdBehaviour struct {
	// provisioning says how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// CommonProvisioningSettings says how long the start of one part takes: startupDuration, plus a random share, up to
// startupJitter, of it.
type CommonProvisioningSettings struct {
	// startupDuration is the least time the start takes.
	StartupDuration metav1.Duration `json:"startupDuration"`

	// startupJitter is the greatest share of startupDuration that is added at random, as a decimal number such as `0.2`;
	// none when unset.
	// +optional
	StartupJitter string `json:"startupJitter,omitempty"`
}

// InMemoryMachineStatus reports a machine.
type InMemoryMachineStatus struct {
	// ready is true once the machine itself has started.
	// +optional
	Ready bool `json:"ready"`

	// conditions describe the present state.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`
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

// GetConditions returns the conditions of the status.
func (m *InMemoryMachine) GetConditions() clusterv1.Conditions {
	return m.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (m *InMemoryMachine) SetConditions(conditions clusterv1.Conditions) {
	m.Status.Conditions = conditions
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
	// template is what InMemoryMachines are made from.
	Template InMemoryMachineTemplateResource `json:"template"`
}

// InMemoryMachineTemplateResource is what InMemoryMachines are made from.
type InMemoryMachineTemplateResource struct {
	// metadata holds labels and annotations that every InMemoryMachine gets.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every InMemoryMachine.
	Spec InMemoryMachineSpec `json:"spec"`
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
}

// InMemoryMachineTemplateList is a list of InMemoryMachineTemplates.
//
// +kubebuilder:object:root=true
type InMemoryMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InMemoryMachineTemplate `json:"items"`
}
