package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// DevMachineFinalizer blocks the deletion of a DevMachine until what its backend made for it is gone.
const DevMachineFinalizer = "devmachine.infrastructure.cluster.x-k8s.io"

// DevMachineSpec is the desired state of a machine.
type DevMachineSpec struct {
	// providerID is the machine's identity, `docker:////<container>` or `in-memory://<name>`; set by the provider.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// backend is what the machine is. Exactly one of its fields must be set.
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

// DockerMachineBackendSpec is the desired state of a machine that is a container.
type DockerMachineBackendSpec struct {
	// customImage is the container's image; by default it derives from the Kubernetes version.
	// +optional
	CustomImage string `json:"customImage,omitempty"`

	// preLoadImages are images copied from the host into the container, for use by its own runtime.
	// +optional
	PreLoadImages []string `json:"preLoadImages,omitempty"`

	// extraMounts are additional host paths mounted into the container.
	// +optional
	ExtraMounts []Mount `json:"extraMounts,omitempty"`

	// bootstrapTimeout is the timeout of the bootstrap data, 5 minutes when unset.
	// +optional
	BootstrapTimeout *metav1.Duration `json:"bootstrapTimeout,omitempty"`
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
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// InMemoryNode is the behavior of a machine's Node.
type InMemoryNode struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// InMemoryAPIServer is the behavior of an API server.
type InMemoryAPIServer struct {
	// provisioning is how long the start takes.
	// +optional
	Provisioning CommonProvisioningSettings `json:"provisioning,omitempty"`
}

// InMemoryEtcd is the behavior of an etcd member.
type InMemoryEtcd struct {
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

// DevMachineStatus is the observed state of a machine.
type DevMachineStatus struct {
	// ready is true once the machine runs.
	// +optional
	Ready bool `json:"ready"`

	// loadBalancerConfigured is true once the load balancer forwards to this control plane machine, with backend docker.
	// +optional
	LoadBalancerConfigured bool `json:"loadBalancerConfigured,omitempty"`

	// addresses of the machine.
	// +optional
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// conditions are the current conditions.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *DevMachineV1Beta2Status `json:"v1beta2,omitempty"`
}

// DevMachineV1Beta2Status is the part of the status of a DevMachine that v1beta2 added.
type DevMachineV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DevMachine is a machine for development and tests.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=devmachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".metadata.ownerReferences[?(@.kind==\"Machine\")].name",description="Machine that owns this object"
// +kubebuilder:printcolumn:name="ProviderID",type="string",JSONPath=".spec.providerID",description="Identity of the machine"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.ready",description="Whether the machine is ready"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DevMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DevMachineSpec   `json:"spec,omitempty"`
	Status DevMachineStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (m *DevMachine) GetConditions() clusterv1.Conditions {
	return m.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (m *DevMachine) SetConditions(conditions clusterv1.Conditions) {
	m.Status.Conditions = conditions
}

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (m *DevMachine) GetV1Beta2Conditions() []metav1.Condition {
	if m.Status.V1Beta2 == nil {
		return nil
	}
	return m.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (m *DevMachine) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if m.Status.V1Beta2 == nil {
		m.Status.V1Beta2 = &DevMachineV1Beta2Status{}
	}
	m.Status.V1Beta2.Conditions = conditions
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
	Template DevMachineTemplateResource `json:"template"`
}

// DevMachineTemplateResource is the template of DevMachines.
type DevMachineTemplateResource struct {
	// metadata holds the labels and annotations of every DevMachine.
	// +optional
	ObjectMeta clusterv1beta1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every DevMachine.
	Spec DevMachineSpec `json:"spec"`
}

// DevMachineTemplate is cloned into one DevMachine per machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=devmachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DevMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DevMachineTemplateSpec `json:"spec,omitempty"`
}

// DevMachineTemplateList is a list of DevMachineTemplates.
//
// +kubebuilder:object:root=true
type DevMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevMachineTemplate `json:"items"`
}
