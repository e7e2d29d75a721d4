package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// DevClusterFinalizer blocks the deletion of a DevCluster until what its backend made for it is gone.
const DevClusterFinalizer = "devcluster.infrastructure.cluster.x-k8s.io"

// DevClusterSpec is the desired state of the infrastructure of a cluster.
type DevClusterSpec struct {
	// controlPlaneEndpoint is the address of the control plane; set by the provider.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint"`

	// backend is what machines of the cluster are. Exactly one of its fields must be set.
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

// DockerClusterBackendSpec is the desired state of the infrastructure of a cluster whose machines are containers.
type DockerClusterBackendSpec struct {
	// failureDomains are copied to the status, because containers do not have failure domains.
	// +optional
	FailureDomains clusterv1beta1.FailureDomains `json:"failureDomains,omitempty"`

	// loadBalancer configures the load balancer's container.
	// +optional
	LoadBalancer DockerLoadBalancer `json:"loadBalancer,omitempty"`
}

// InMemoryClusterBackendSpec is the desired state of the infrastructure of a cluster whose machines are simulated.
type InMemoryClusterBackendSpec struct{}

// DevClusterStatus is the observed state of the infrastructure of a cluster.
type DevClusterStatus struct {
	// ready is true once the control plane has an address.
	// +optional
	Ready bool `json:"ready"`

	// failureDomains are those of the spec.
	// +optional
	FailureDomains clusterv1beta1.FailureDomains `json:"failureDomains,omitempty"`

	// conditions are the current conditions.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *DevClusterV1Beta2Status `json:"v1beta2,omitempty"`
}

// DevClusterV1Beta2Status is the part of the status of a DevCluster that v1beta2 added.
type DevClusterV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
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
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DevClusterSpec   `json:"spec,omitempty"`
	Status DevClusterStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (c *DevCluster) GetConditions() clusterv1.Conditions {
	return c.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (c *DevCluster) SetConditions(conditions clusterv1.Conditions) {
	c.Status.Conditions = conditions
}

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (c *DevCluster) GetV1Beta2Conditions() []metav1.Condition {
	if c.Status.V1Beta2 == nil {
		return nil
	}
	return c.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (c *DevCluster) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if c.Status.V1Beta2 == nil {
		c.Status.V1Beta2 = &DevClusterV1Beta2Status{}
	}
	c.Status.V1Beta2.Conditions = conditions
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
	Template DevClusterTemplateResource `json:"template"`
}

// DevClusterTemplateResource is the template of DevClusters.
type DevClusterTemplateResource struct {
	// metadata holds the labels and annotations of every DevCluster.
	// +optional
	ObjectMeta clusterv1beta1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every DevCluster.
	Spec DevClusterSpec `json:"spec"`
}

// DevClusterTemplate is the template from which a ClusterClass creates the DevCluster of each Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=devclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DevClusterTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DevClusterTemplateSpec `json:"spec,omitempty"`
}

// DevClusterTemplateList is a list of DevClusterTemplates.
//
// +kubebuilder:object:root=true
type DevClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DevClusterTemplate `json:"items"`
}
