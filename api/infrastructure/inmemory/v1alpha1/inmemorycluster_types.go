package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// ClusterFinalizer keeps an InMemoryCluster until its simulated resources are gone.
const ClusterFinalizer = "inmemorycluster.infrastructure.cluster.x-k8s.io"

// ListenerAnnotationName on an InMemoryCluster names, as `<namespace>/<cluster name>`, the listener on which the workload
// cluster's API server answers. It lets the provider open the same listener again after a restart.
const ListenerAnnotationName = "inmemorycluster.infrastructure.cluster.x-k8s.io/listener"

// FaultsAnnotation on an InMemoryCluster says, as JSON, what is wrong with its workload cluster, for those who test how
// the rest of the world bears it:
//
//	{"latency": "200ms", "errorRate": 0.1, "unresponsive": false, "deadMachines": ["<InMemoryMachine name>"]}
//
// A further field, "emulate": "v1.7", lets the cluster's API server and etcd know no more than those of Cluster API v1.7's
// in-memory provider. Every field is optional. Taking the annotation away repairs everything.
const FaultsAnnotation = "inmemorycluster.infrastructure.cluster.x-k8s.io/faults"

// InMemoryClusterSpec says what the infrastructure of a cluster shall be.
type InMemoryClusterSpec struct {
	// controlPlaneEndpoint is the address of the control plane; the provider fills it in.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint"`
}

// APIEndpoint is the address of a control plane.
type APIEndpoint struct {
	// host is a host name or IP address.
	Host string `json:"host"`

	// port of the API server.
	Port int `json:"port"`
}

// InMemoryClusterStatus reports the infrastructure of a cluster.
type InMemoryClusterStatus struct {
	// ready is true once the control plane has an address.
	// +optional
	Ready bool `json:"ready"`

	// port is where the workload cluster's API server listens. The provider alone writes it, and by it knows whose a port
	// is if several InMemoryClusters have it in their spec.
	// +optional
	Port int `json:"port,omitempty"`

	// conditions describe the present state: Ready says what ready says.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`
}

// InMemoryCluster is the simulated infrastructure of a cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=inmemoryclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster to which this object belongs"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type InMemoryCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InMemoryClusterSpec   `json:"spec,omitempty"`
	Status InMemoryClusterStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the status.
func (c *InMemoryCluster) GetConditions() clusterv1.Conditions {
	return c.Status.Conditions
}

// SetConditions replaces the conditions of the status.
func (c *InMemoryCluster) SetConditions(conditions clusterv1.Conditions) {
	c.Status.Conditions = conditions
}

// InMemoryClusterList is a list of InMemoryClusters.
//
// +kubebuilder:object:root=true
type InMemoryClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InMemoryCluster `json:"items"`
}

// InMemoryClusterTemplateSpec wraps the template.
type InMemoryClusterTemplateSpec struct {
	// template is what InMemoryClusters are made from.
	Template InMemoryClusterTemplateResource `json:"template"`
}

// InMemoryClusterTemplateResource is what InMemoryClusters are made from.
type InMemoryClusterTemplateResource struct {
	// metadata holds labels and annotations that every InMemoryCluster gets.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every InMemoryCluster.
	Spec InMemoryClusterSpec `json:"spec"`
}

// InMemoryClusterTemplate is what a ClusterClass makes the InMemoryCluster of each Cluster from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=inmemoryclustertemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type InMemoryClusterTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec InMemoryClusterTemplateSpec `json:"spec,omitempty"`
}

// InMemoryClusterTemplateList is a list of InMemoryClusterTemplates.
//
// +kubebuilder:object:root=true
type InMemoryClusterTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InMemoryClusterTemplate `json:"items"`
}
