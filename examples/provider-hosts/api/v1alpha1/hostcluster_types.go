package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// HostClusterSpec specifies how the control plane is reached.
type HostClusterSpec struct {
	// controlPlaneEndpoint is a load balancer or virtual address that leads to the control plane. The provider makes none; if
	// it is empty, that of the Cluster is taken over.
	// +optional
	ControlPlaneEndpoint clusterv1beta1.APIEndpoint `json:"controlPlaneEndpoint,omitempty"`
}

// HostClusterStatus reports the infrastructure of a Cluster, for contract v1beta1.
type HostClusterStatus struct {
	// ready is true once there is an endpoint.
	// +optional
	Ready bool `json:"ready"`
	// failureDomains are the zones of the namespace's Hosts.
	// +optional
	FailureDomains clusterv1beta1.FailureDomains `json:"failureDomains,omitempty"`
	// conditions describe the present state.
	// +optional
	Conditions clusterv1beta1.Conditions `json:"conditions,omitempty"`
	// v1beta2 has the conditions of contract v1beta2.
	// +optional
	V1Beta2 *HostClusterV1Beta2Status `json:"v1beta2,omitempty"`
}

// HostClusterV1Beta2Status is the part of the status that is for contract v1beta2.
type HostClusterV1Beta2Status struct {
	// conditions describe the present state.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HostCluster is the infrastructure of a Cluster whose Machines are Hosts, as contract v1beta1 has it. v1alpha2 is what is stored.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha2"}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="boolean",JSONPath=".status.ready"
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=".spec.controlPlaneEndpoint.host"
type HostCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HostClusterSpec   `json:"spec,omitempty"`
	Status HostClusterStatus `json:"status,omitempty"`
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
	ObjectMeta clusterv1beta1.ObjectMeta `json:"metadata,omitempty"`
	// spec of every HostCluster.
	Spec HostClusterSpec `json:"spec"`
}

// HostClusterTemplate is what a ClusterClass makes HostClusters from. v1alpha2 is what is stored.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=hostclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha2"}
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
