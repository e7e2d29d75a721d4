package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// ClusterFinalizer blocks the deletion of a DockerCluster until its load balancer's container is gone.
const ClusterFinalizer = "dockercluster.infrastructure.cluster.x-k8s.io"

// DockerClusterSpec is the desired state of the infrastructure of a cluster.
type DockerClusterSpec struct {
	// controlPlaneEndpoint is the address of the control plane. The provider sets the host to the address of the load
	// balancer's container.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint"`

	// failureDomains are copied to the status, because containers do not have failure domains.
	// +optional
	FailureDomains clusterv1.FailureDomains `json:"failureDomains,omitempty"`

	// loadBalancer configures the load balancer's container.
	// +optional
	LoadBalancer DockerLoadBalancer `json:"loadBalancer,omitempty"`
}

// DockerLoadBalancer configures the load balancer's container.
type DockerLoadBalancer struct {
	ImageMeta `json:",inline"`

	// customHAProxyConfigTemplateRef references a ConfigMap, in the namespace of this object, whose key `value` is a Go
	// template that renders the load balancer's configuration instead of the built-in one.
	// +optional
	CustomHAProxyConfigTemplateRef *corev1.LocalObjectReference `json:"customHAProxyConfigTemplateRef,omitempty"`
}

// ImageMeta overrides the registry and tag of an image.
type ImageMeta struct {
	// imageRepository is the registry of the image.
	// +optional
	ImageRepository string `json:"imageRepository,omitempty"`

	// imageTag is the tag of the image.
	// +optional
	ImageTag string `json:"imageTag,omitempty"`
}

// APIEndpoint is the address of a control plane.
type APIEndpoint struct {
	// host is a host name or IP address. It is always written.
	// +optional
	Host string `json:"host"`

	// port of the API server; 0 is replaced by 6443. It is always written.
	// +optional
	Port int `json:"port"`
}

// DockerClusterStatus is the observed state of the infrastructure of a cluster.
type DockerClusterStatus struct {
	// ready is true once the load balancer has an address.
	// +optional
	Ready bool `json:"ready"`

	// failureDomains are those of the spec.
	// +optional
	FailureDomains clusterv1.FailureDomains `json:"failureDomains,omitempty"`

	// conditions are the current conditions.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *DockerClusterV1Beta2Status `json:"v1beta2,omitempty"`
}

// DockerClusterV1Beta2Status is the part of the status of a DockerCluster that v1beta2 added.
type DockerClusterV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DockerCluster is the infrastructure of a cluster whose machines are containers: a load balancer.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockerclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DockerClusterSpec   `json:"spec,omitempty"`
	Status DockerClusterStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (c *DockerCluster) GetConditions() clusterv1.Conditions {
	return c.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (c *DockerCluster) SetConditions(conditions clusterv1.Conditions) {
	c.Status.Conditions = conditions
}

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (c *DockerCluster) GetV1Beta2Conditions() []metav1.Condition {
	if c.Status.V1Beta2 == nil {
		return nil
	}
	return c.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (c *DockerCluster) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if c.Status.V1Beta2 == nil {
		c.Status.V1Beta2 = &DockerClusterV1Beta2Status{}
	}
	c.Status.V1Beta2.Conditions = conditions
}

// DockerClusterList is a list of DockerClusters.
//
// +kubebuilder:object:root=true
type DockerClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DockerCluster `json:"items"`
}

// DockerClusterTemplateSpec wraps the template.
type DockerClusterTemplateSpec struct {
	// template is the template of DockerClusters; its spec is immutable.
	Template DockerClusterTemplateResource `json:"template"`
}

// DockerClusterTemplateResource is the template of DockerClusters.
type DockerClusterTemplateResource struct {
	// metadata holds the labels and annotations of every DockerCluster.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every DockerCluster.
	Spec DockerClusterSpec `json:"spec"`
}

// DockerClusterTemplate is the template from which a ClusterClass creates the DockerCluster of each Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockerclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerClusterTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DockerClusterTemplateSpec `json:"spec,omitempty"`
}

// DockerClusterTemplateList is a list of DockerClusterTemplates.
//
// +kubebuilder:object:root=true
type DockerClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DockerClusterTemplate `json:"items"`
}
