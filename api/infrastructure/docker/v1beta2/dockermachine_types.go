package v1beta2

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineFinalizer blocks the deletion of a DockerMachine until its container is gone.
const MachineFinalizer = "dockermachine.infrastructure.cluster.x-k8s.io"

// DefaultBootstrapTimeout is the default timeout of the bootstrap data.
const DefaultBootstrapTimeout = 5 * time.Minute

// DockerMachineSpec is the desired state of a machine.
type DockerMachineSpec struct {
	// providerID is the container's identity, `docker:////<container>`; set by the provider.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	DockerMachineBackendSpec `json:",inline"`
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

// Mount mounts a path of the host into a container.
type Mount struct {
	// containerPath is the path in the container.
	// +optional
	ContainerPath string `json:"containerPath,omitempty"`

	// hostPath is the path on the host.
	// +optional
	HostPath string `json:"hostPath,omitempty"`

	// readOnly mounts without write access. Defaults to false.
	// +optional
	Readonly *bool `json:"readOnly,omitempty"`
}

// DockerMachineStatus is the observed state of a machine.
type DockerMachineStatus struct {
	// conditions are the current conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what was achieved once; controllers rely on it, conditions are for users.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// loadBalancerConfigured is true once the load balancer forwards to this control plane machine.
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

// DockerMachine is a machine that is a container. Deprecated: use DevMachine.
//
// +kubebuilder:deprecatedversion
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockermachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Provider ID",type="string",JSONPath=".spec.providerID",description="Identity of the machine",priority=10
// +kubebuilder:printcolumn:name="Failure domain",type="string",JSONPath=".status.failureDomain",description="Failure domain in which the machine is"
// +kubebuilder:printcolumn:name="IP",type="string",JSONPath=`.status.addresses[?(@.type=="InternalIP")].address`,description="Internal IP address of the machine",priority=10
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Provisioned",type="string",JSONPath=".status.initialization.provisioned",description="Whether the machine is provisioned"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerMachine struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DockerMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status DockerMachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the status.
func (m *DockerMachine) GetConditions() []metav1.Condition {
	return m.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (m *DockerMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns the conditions that clients of v1beta1 see.
func (m *DockerMachine) GetV1Beta1Conditions() clusterv1.Conditions {
	return v1beta1Conditions(m.Status.Deprecated)
}

// SetV1Beta1Conditions replaces the conditions that clients of v1beta1 see.
func (m *DockerMachine) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	setV1Beta1Conditions(&m.Status.Deprecated, conditions)
}

// DockerMachineList is a list of DockerMachines.
//
// +kubebuilder:object:root=true
type DockerMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DockerMachine `json:"items"`
}

// DockerMachineTemplateSpec wraps the template.
type DockerMachineTemplateSpec struct {
	// template is the template of DockerMachines; its spec is immutable.
	// +required
	Template DockerMachineTemplateResource `json:"template"`
}

// DockerMachineTemplateResource is the template of DockerMachines.
type DockerMachineTemplateResource struct {
	// metadata holds the labels and annotations of every DockerMachine.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of every DockerMachine.
	// +required
	Spec DockerMachineSpec `json:"spec"`
}

// DockerMachineTemplate is cloned into one DockerMachine per machine. Deprecated: use DevMachineTemplate.
//
// +kubebuilder:deprecatedversion
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockermachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DockerMachineTemplateSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status TemplateStatus `json:"status,omitempty,omitzero"`
}

// DockerMachineTemplateList is a list of DockerMachineTemplates.
//
// +kubebuilder:object:root=true
type DockerMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DockerMachineTemplate `json:"items"`
}
