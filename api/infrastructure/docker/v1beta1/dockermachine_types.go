package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// MachineFinalizer blocks the deletion of a DockerMachine until its container is gone.
const MachineFinalizer = "dockermachine.infrastructure.cluster.x-k8s.io"

// DefaultBootstrapTimeout is the default timeout of the bootstrap data.
const DefaultBootstrapTimeout = 3 * time.Minute

// DockerMachineSpec is the desired state of a machine.
type DockerMachineSpec struct {
	// providerID is the container's identity, `docker:////<container>`; set by the provider.
	// +optional
	ProviderID *string `json:"providerID,omitempty"`

	// customImage is the container's image; by default it derives from the Kubernetes version.
	// +optional
	CustomImage string `json:"customImage,omitempty"`

	// preLoadImages are images copied from the host into the container, for use by its own runtime.
	// +optional
	PreLoadImages []string `json:"preLoadImages,omitempty"`

	// extraMounts are additional host paths mounted into the container.
	// +optional
	ExtraMounts []Mount `json:"extraMounts,omitempty"`

	// bootstrapped is set after the bootstrap data succeeded, so that it does not run again.
	// +optional
	Bootstrapped bool `json:"bootstrapped,omitempty"`

	// bootstrapTimeout is the timeout of the bootstrap data, 3 minutes when unset.
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

	// readOnly mounts without write access.
	// +optional
	Readonly bool `json:"readOnly,omitempty"`
}

// DockerMachineStatus is the observed state of a machine.
type DockerMachineStatus struct {
	// ready is true once the container runs and its Node is known.
	// +optional
	Ready bool `json:"ready"`

	// loadBalancerConfigured is true once the load balancer forwards to this control plane machine.
	// +optional
	LoadBalancerConfigured bool `json:"loadBalancerConfigured"`

	// addresses of the container.
	// +optional
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// conditions are the current conditions.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *DockerMachineV1Beta2Status `json:"v1beta2,omitempty"`
}

// DockerMachineV1Beta2Status is the part of the status of a DockerMachine that v1beta2 added.
type DockerMachineV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DockerMachine is a machine that is a container.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockermachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".metadata.ownerReferences[?(@.kind==\"Machine\")].name",description="Machine that owns this object"
// +kubebuilder:printcolumn:name="ProviderID",type="string",JSONPath=".spec.providerID",description="Identity of the container"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.ready",description="Whether the machine is ready"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DockerMachineSpec   `json:"spec,omitempty"`
	Status DockerMachineStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (m *DockerMachine) GetConditions() clusterv1.Conditions {
	return m.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (m *DockerMachine) SetConditions(conditions clusterv1.Conditions) {
	m.Status.Conditions = conditions
}

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (m *DockerMachine) GetV1Beta2Conditions() []metav1.Condition {
	if m.Status.V1Beta2 == nil {
		return nil
	}
	return m.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (m *DockerMachine) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if m.Status.V1Beta2 == nil {
		m.Status.V1Beta2 = &DockerMachineV1Beta2Status{}
	}
	m.Status.V1Beta2.Conditions = conditions
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
	Template DockerMachineTemplateResource `json:"template"`
}

// DockerMachineTemplateResource is the template of DockerMachines.
type DockerMachineTemplateResource struct {
	// metadata holds the labels and annotations of every DockerMachine.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every DockerMachine.
	Spec DockerMachineSpec `json:"spec"`
}

// DockerMachineTemplate is cloned into one DockerMachine per machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockermachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DockerMachineTemplateSpec `json:"spec,omitempty"`
}

// DockerMachineTemplateList is a list of DockerMachineTemplates.
//
// +kubebuilder:object:root=true
type DockerMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DockerMachineTemplate `json:"items"`
}
