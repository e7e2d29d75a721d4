package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ClusterFinalizer blocks the deletion of an InMemoryCluster until its simulated resources are gone.
const ClusterFinalizer = "inmemorycluster.infrastructure.cluster.x-k8s.io"

// ListenerAnnotationName on an InMemoryCluster is the listener, as `<namespace>/<cluster name>`, of the workload
// cluster's API server. It lets the provider open the same listener again after a restart.
const ListenerAnnotationName = "inmemorycluster.infrastructure.cluster.x-k8s.io/listener"

// FaultsAnnotation on an InMemoryCluster injects faults, as JSON, into its workload cluster, for tests:
//
//	{"latency": "200ms", "errorRate": 0.1, "unresponsive": false, "deadMachines": ["<InMemoryMachine name>"]}
//
// Another field, "emulate": "v1.7", restricts the cluster's API server and etcd to the features of Cluster API v1.7's
// in-memory provider. "snapshot": "interrupted" or "corrupt" breaks snapshots of etcd. Every field is optional.
// Removing the annotation removes all faults.
const FaultsAnnotation = "inmemorycluster.infrastructure.cluster.x-k8s.io/faults"

// InMemoryClusterSpec is the desired state of the infrastructure of a cluster.
type InMemoryClusterSpec struct {
	// controlPlaneEndpoint is the address of the control plane; set by the provider.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint"`

	// failureDomains are the failure domains of the simulated cloud, by name. They are copied to the status.
	// +optional
	FailureDomains clusterv1beta1.FailureDomains `json:"failureDomains,omitempty"`

	// hostedControlPlane runs the control plane without machines, for control plane providers that host it themselves.
	// +optional
	HostedControlPlane *HostedControlPlane `json:"hostedControlPlane,omitempty"`
}

// HostedControlPlane is a control plane that does not run on machines of the cluster. Its API server has the CA in the Secret
// `<cluster>-ca`, which the control plane provider creates.
type HostedControlPlane struct {
	// version is the Kubernetes version of the API server, such as `v1.31.2`.
	Version string `json:"version"`
}

// APIEndpoint is the address of a control plane.
type APIEndpoint struct {
	// host is a host name or IP address.
	Host string `json:"host"`

	// port of the API server.
	Port int `json:"port"`
}

// InitializationStatus is what has been done once in the life of an object.
type InitializationStatus struct {
	// provisioned is true once the object has been ready.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// InMemoryClusterStatus is the observed state of the infrastructure of a cluster.
type InMemoryClusterStatus struct {
	// ready is true once the control plane has an address.
	// +optional
	Ready bool `json:"ready"`

	// initialization has what ready is in contract v1beta1, for contract v1beta2: the CustomResourceDefinitions are in it if they have label
	// cluster.x-k8s.io/v1beta2.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// port is the port of the workload cluster's API server. Only the provider writes it, to decide which InMemoryCluster
	// owns a port that several have in their spec.
	// +optional
	Port int `json:"port,omitempty"`

	// failureDomains are the failure domains in which machines can be placed, by name.
	// +optional
	FailureDomains clusterv1beta1.FailureDomains `json:"failureDomains,omitempty"`

	// hostedControlPlaneVersion is the version that the hosted control plane serves; empty if none is running.
	// +optional
	HostedControlPlaneVersion string `json:"hostedControlPlaneVersion,omitempty"`

	// conditions are the current conditions: Ready equals ready.
	// +optional
	Conditions clusterv1beta1.Conditions `json:"conditions,omitempty"`
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

// GetV1Beta1Conditions returns the conditions of the status.
func (c *InMemoryCluster) GetV1Beta1Conditions() clusterv1.Conditions {
	return conditionsOf(c.Status.Conditions)
}

// SetV1Beta1Conditions replaces the conditions of the status.
func (c *InMemoryCluster) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	c.Status.Conditions = stored(conditions)
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
	// template is the template of InMemoryClusters.
	Template InMemoryClusterTemplateResource `json:"template"`
}

// InMemoryClusterTemplateResource is the template of InMemoryClusters.
type InMemoryClusterTemplateResource struct {
	// metadata holds the labels and annotations of every InMemoryCluster.
	// +optional
	ObjectMeta clusterv1beta1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every InMemoryCluster.
	Spec InMemoryClusterSpec `json:"spec"`
}

// InMemoryClusterTemplate is the template from which a ClusterClass creates the InMemoryCluster of each Cluster.
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
