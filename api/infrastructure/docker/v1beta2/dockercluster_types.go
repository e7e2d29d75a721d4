package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ClusterFinalizer blocks the deletion of a DockerCluster until its load balancer's container is gone.
const ClusterFinalizer = "dockercluster.infrastructure.cluster.x-k8s.io"

// DockerClusterSpec is the desired state of the infrastructure of a cluster.
type DockerClusterSpec struct {
	// controlPlaneEndpoint is the address of the control plane. The provider sets the host to the address of the load
	// balancer's container, and the port to 6443 unless it is set.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	DockerClusterBackendSpec `json:",inline"`
}

// DockerClusterBackendSpec is the desired state of the infrastructure of a cluster whose machines are containers.
type DockerClusterBackendSpec struct {
	// failureDomains are copied to the status, because containers do not have failure domains.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// loadBalancer configures the load balancer's container.
	// +optional
	LoadBalancer DockerLoadBalancer `json:"loadBalancer,omitempty,omitzero"`
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

// DockerClusterStatus is the observed state of the infrastructure of a cluster.
type DockerClusterStatus struct {
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

// DockerCluster is the infrastructure of a cluster whose machines are containers: a load balancer. Deprecated: use DevCluster.
//
// +kubebuilder:deprecatedversion
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockerclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DockerClusterSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status DockerClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the status.
func (c *DockerCluster) GetConditions() []metav1.Condition {
	return c.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (c *DockerCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns the conditions that clients of v1beta1 see.
func (c *DockerCluster) GetV1Beta1Conditions() clusterv1.Conditions {
	return v1beta1Conditions(c.Status.Deprecated)
}

// SetV1Beta1Conditions replaces the conditions that clients of v1beta1 see.
func (c *DockerCluster) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	setV1Beta1Conditions(&c.Status.Deprecated, conditions)
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
	// +required
	Template DockerClusterTemplateResource `json:"template"`
}

// DockerClusterTemplateResource is the template of DockerClusters.
type DockerClusterTemplateResource struct {
	// metadata holds the labels and annotations of every DockerCluster.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of every DockerCluster.
	// +required
	Spec DockerClusterSpec `json:"spec"`
}

// DockerClusterTemplate is the template from which a ClusterClass creates the DockerCluster of each Cluster. Deprecated: use
// DevClusterTemplate.
//
// +kubebuilder:deprecatedversion
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=dockerclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type DockerClusterTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec DockerClusterTemplateSpec `json:"spec,omitempty,omitzero"`
}

// DockerClusterTemplateList is a list of DockerClusterTemplates.
//
// +kubebuilder:object:root=true
type DockerClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DockerClusterTemplate `json:"items"`
}
