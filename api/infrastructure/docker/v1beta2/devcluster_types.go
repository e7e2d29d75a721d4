package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// DevClusterFinalizer blocks the deletion of a DevCluster until what its backend made for it is gone.
const DevClusterFinalizer = "devcluster.infrastructure.cluster.x-k8s.io"

// DevClusterSpec is the desired state of the infrastructure of a cluster.
type DevClusterSpec struct {
	// controlPlaneEndpoint is the address of the control plane; set by the provider.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// backend is what machines of the cluster are. Exactly one of its fields must be set.
	// +required
	Backend DevClusterBackendSpec `json:"backend"`
}

// DevClusterBackendSpec is what machines of a cluster are.
type DevClusterBackendSpec struct {
	// docker is for machines that are containers, with a load balancer.
	// +optional
	Docker *DockerClusterBackendSpec `json:"docker,omitempty"`

	// inMemory is for machines, Nodes and an API server that are simulated in the memory of the provider.
	// +optional
	InMemory *InMemoryClusterBackendSpec `json:"inMemory,omitempty"`
}

// InMemoryClusterBackendSpec is the desired state of the infrastructure of a cluster whose machines are simulated.
type InMemoryClusterBackendSpec struct{}

// DevClusterStatus is the observed state of the infrastructure of a cluster.
type DevClusterStatus struct {
	// conditions are the current conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is what was achieved once; controllers rely on it, conditions are for users.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// failureDomains are those of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// deprecated groups what goes with API version v1beta1.
	// +optional
	Deprecated *DeprecatedStatus `json:"deprecated,omitempty"`
}

// DevCluster is the infrastructure of a cluster for development and tests.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=devclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DevCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DevClusterSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status DevClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the status.
func (c *DevCluster) GetConditions() []metav1.Condition {
	return c.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (c *DevCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns the conditions that clients of v1beta1 see.
func (c *DevCluster) GetV1Beta1Conditions() clusterv1.Conditions {
	return v1beta1Conditions(c.Status.Deprecated)
}

// SetV1Beta1Conditions replaces the conditions that clients of v1beta1 see.
func (c *DevCluster) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	setV1Beta1Conditions(&c.Status.Deprecated, conditions)
}

// DevClusterList is a list of DevClusters.
//
// +kubebuilder:object:root=true
type DevClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevCluster `json:"items"`
}

// DevClusterTemplateSpec wraps the template.
type DevClusterTemplateSpec struct {
	// template is the template of DevClusters; its spec is immutable.
	// +required
	Template DevClusterTemplateResource `json:"template"`
}

// DevClusterTemplateResource is the template of DevClusters.
type DevClusterTemplateResource struct {
	// metadata holds the labels and annotations of every DevCluster.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of every DevCluster.
	// +required
	Spec DevClusterSpec `json:"spec"`
}

// DevClusterTemplate is the template from which a ClusterClass creates the DevCluster of each Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=devclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DevClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DevClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// DevClusterTemplateList is a list of DevClusterTemplates.
//
// +kubebuilder:object:root=true
type DevClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevClusterTemplate `json:"items"`
}
