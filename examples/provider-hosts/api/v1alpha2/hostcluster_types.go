package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
)

// HostClusterSpec specifies how the control plane is reached.
type HostClusterSpec struct {
	// controlPlaneEndpoint is a load balancer or virtual address that leads to the control plane. The provider makes none; if
	// it is empty, that of the Cluster is taken over.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`
}

// HostClusterStatus reports the infrastructure of a Cluster.
type HostClusterStatus struct {
	// initialization reports what happened once.
	// +optional
	Initialization hostsv1.Initialization `json:"initialization,omitempty,omitzero"`
	// failureDomains are the zones of the namespace's Hosts.
	// +optional
	// +listType=map
	// +listMapKey=name
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
	// conditions describe the present state.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// deprecated has the conditions with severities, for contract v1beta1.
	// +optional
	Deprecated *hostsv1.Deprecated `json:"deprecated,omitempty"`
}

// HostCluster is the infrastructure of a Cluster whose Machines are Hosts.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="boolean",JSONPath=".status.initialization.provisioned"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host"
type HostCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HostClusterSpec   `json:"spec,omitempty,omitzero"`
	Status HostClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the status.
func (c *HostCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the status.
func (c *HostCluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// GetV1Beta1Conditions returns the conditions with severities.
func (c *HostCluster) GetV1Beta1Conditions() clusterv1.Conditions {
	return c.Status.Deprecated.V1Beta1Conditions()
}

// SetV1Beta1Conditions replaces the conditions with severities.
func (c *HostCluster) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	c.Status.Deprecated = hostsv1.WithV1Beta1Conditions(conditions)
}

// HostClusterList is a list of HostClusters.
//
// +kubebuilder:object:root=true
type HostClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostCluster `json:"items"`
}

// HostClusterTemplateSpec wraps the template.
type HostClusterTemplateSpec struct {
	// template is what HostClusters are made from.
	Template HostClusterTemplateResource `json:"template"`
}

// HostClusterTemplateResource is what HostClusters are made from.
type HostClusterTemplateResource struct {
	// metadata holds labels and annotations that every HostCluster gets.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec of every HostCluster.
	Spec HostClusterSpec `json:"spec"`
}

// HostClusterTemplate is what a ClusterClass makes HostClusters from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
type HostClusterTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HostClusterTemplateSpec `json:"spec"`
}

// HostClusterTemplateList is a list of HostClusterTemplates.
//
// +kubebuilder:object:root=true
type HostClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostClusterTemplate `json:"items"`
}
