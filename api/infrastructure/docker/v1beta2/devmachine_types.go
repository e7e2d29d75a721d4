package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// DevMachineFinalizer blocks the deletion of a DevMachine until what its backend made for it is gone.
const DevMachineFinalizer = "devmachine.infrastructure.cluster.x-k8s.io"

// DevMachineSpec is the desired state of a machine.
type DevMachineSpec struct {
	// providerID is the machine's identity, `docker:////<container>` or `in-memory://<name>`; set by the provider.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// backend is what the machine is. Exactly one of its fields must be set.
	// +required
	Backend DevMachineBackendSpec `json:"backend"`
}

// DevMachineBackendSpec is what a machine is.
type DevMachineBackendSpec struct {
	// docker is for a container.
	// +optional
	Docker *DockerMachineBackendSpec `json:"docker,omitempty"`

	// inMemory is for a simulation in the memory of the provider.
	// +optional
	InMemory *InMemoryMachineBackendSpec `json:"inMemory,omitempty"`
}

// InMemoryMachineBackendSpec is the behavior of the parts of a simulated machine. A part that is unset starts immediately.
type InMemoryMachineBackendSpec struct {
	// vm is the machine itself.
	// +optional
	VM *InMemoryVM `json:"vm,omitempty"`

	// node is the machine's Node, which starts after the machine itself.
	// +optional
	Node *InMemoryNode `json:"node,omitempty"`

	// apiServer of a control plane machine, which starts after the Node.
	// +optional
	APIServer *InMemoryAPIServer `json:"apiServer,omitempty"`

	// etcd of a control plane machine, which starts after the Node.
	// +optional
	Etcd *InMemoryEtcd `json:"etcd,omitempty"`
}

// InMemoryVM is the behavior of the machine itself.
type InMemoryVM struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty,omitzero"`
}

// InMemoryNode is the behavior of a machine's Node.
type InMemoryNode struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty,omitzero"`
}

// InMemoryAPIServer is the behavior of an API server.
type InMemoryAPIServer struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty,omitzero"`
}

// InMemoryEtcd is the behavior of an etcd member.
type InMemoryEtcd struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty,omitzero"`
}

// CommonProvisioningSettings is how long the start of a part takes: startupDuration, plus a random fraction of it, up to
// startupJitter.
type CommonProvisioningSettings struct {
	// startupDuration is the minimum time of the start.
	// +required
	StartupDuration metav1.Duration `json:"startupDuration"`

	// startupJitter is the maximum random fraction of startupDuration to add, as a decimal number such as `0.2`; none
	// when unset.
	// +optional
	StartupJitter string `json:"startupJitter,omitempty"`
}

// DevMachineStatus is the observed state of a machine.
type DevMachineStatus struct {
	// conditions are the current conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what was achieved once; controllers rely on it, conditions are for users.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// loadBalancerConfigured is true once the load balancer forwards to this control plane machine, with backend docker.
	// +optional
	LoadBalancerConfigured bool `json:"loadBalancerConfigured,omitempty"`

	// addresses of the machine.
	// +optional
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// failureDomain is where the machine is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// deprecated groups what goes with API version v1beta1.
	// +optional
	Deprecated *DeprecatedStatus `json:"deprecated,omitempty"`
}

// DevMachine is a machine for development and tests.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=devmachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Provider ID",type="string",JSONPath=".spec.providerID",description="Identity of the machine",priority=10
// +kubebuilder:printcolumn:name="Failure domain",type="string",JSONPath=".status.failureDomain",description="Failure domain in which the machine is"
// +kubebuilder:printcolumn:name="IP",type="string",JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`,description="Internal IP address of the machine",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Provisioned",type="string",JSONPath=".status.initialization.provisioned",description="Whether the machine is provisioned"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DevMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DevMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status DevMachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the status.
func (m *DevMachine) GetConditions() []metav1.Condition {
	return m.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (m *DevMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns the conditions that clients of v1beta1 see.
func (m *DevMachine) GetV1Beta1Conditions() clusterv1.Conditions {
	return v1beta1Conditions(m.Status.Deprecated)
}

// SetV1Beta1Conditions replaces the conditions that clients of v1beta1 see.
func (m *DevMachine) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	setV1Beta1Conditions(&m.Status.Deprecated, conditions)
}

// DevMachineList is a list of DevMachines.
//
// +kubebuilder:object:root=true
type DevMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevMachine `json:"items"`
}

// DevMachineTemplateSpec wraps the template.
type DevMachineTemplateSpec struct {
	// template is the template of DevMachines; its spec is immutable.
	// +required
	Template DevMachineTemplateResource `json:"template"`
}

// DevMachineTemplateResource is the template of DevMachines.
type DevMachineTemplateResource struct {
	// metadata holds the labels and annotations of every DevMachine.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of every DevMachine.
	// +required
	Spec DevMachineSpec `json:"spec"`
}

// DevMachineTemplate is cloned into one DevMachine per machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=devmachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DevMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DevMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status TemplateStatus `json:"status,omitempty,omitzero"`
}

// DevMachineTemplateList is a list of DevMachineTemplates.
//
// +kubebuilder:object:root=true
type DevMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevMachineTemplate `json:"items"`
}
