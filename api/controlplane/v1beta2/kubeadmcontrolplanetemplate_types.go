package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// KubeadmControlPlaneTemplateSpec wraps the template.
type KubeadmControlPlaneTemplateSpec struct {
	// template is the template of KubeadmControlPlanes; its spec is immutable.
	// +required
	Template KubeadmControlPlaneTemplateResource `json:"template,omitempty,omitzero"`
}

// KubeadmControlPlaneTemplateResource is the template of KubeadmControlPlanes.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneTemplateResource struct {
	// metadata holds the labels and annotations of every KubeadmControlPlane.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of every KubeadmControlPlane, without the fields that the Cluster's topology sets.
	// +optional
	Spec KubeadmControlPlaneTemplateResourceSpec `json:"spec,omitempty,omitzero"`
}

// KubeadmControlPlaneTemplateResourceSpec is a KubeadmControlPlaneSpec without the fields that the Cluster's topology
// sets: replicas, version and the infrastructure of Machines.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneTemplateResourceSpec struct {
	// machineTemplate is the template of Machines.
	// +optional
	MachineTemplate KubeadmControlPlaneTemplateMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// kubeadmConfigSpec is how Machines are initialized and joined.
	// +optional
	KubeadmConfigSpec bootstrapv1.KubeadmConfigSpec `json:"kubeadmConfigSpec,omitempty,omitzero"`

	// rollout is when and how Machines are replaced.
	// +optional
	Rollout KubeadmControlPlaneRolloutSpec `json:"rollout,omitempty,omitzero"`

	// remediation limits how unhealthy Machines are replaced.
	// +optional
	Remediation KubeadmControlPlaneRemediationSpec `json:"remediation,omitempty,omitzero"`

	// machineNaming defines the names of new Machines.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`
}

// KubeadmControlPlaneTemplateMachineTemplate is a KubeadmControlPlaneMachineTemplate without the infrastructure.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneTemplateMachineTemplate struct {
	// metadata holds the labels and annotations of every Machine, its infrastructure and its KubeadmConfig.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec of every Machine.
	// +optional
	Spec KubeadmControlPlaneTemplateMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// KubeadmControlPlaneTemplateMachineTemplateSpec is what a template can set of the spec of every Machine.
// +kubebuilder:validation:MinProperties=1
type KubeadmControlPlaneTemplateMachineTemplateSpec struct {
	// deletion limits the steps of deleting a Machine.
	// +optional
	Deletion clusterv1.MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints are set on every Node. Taints that other clients set on it are kept. Changed in place. Requires the feature gate
	// MachineTaintPropagation.
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// KubeadmControlPlaneTemplate is the template from which a ClusterClass creates the KubeadmControlPlane of each Cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubeadmcontrolplanetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="ClusterClass",type="string",JSONPath=`.metadata.ownerReferences[?(@.kind=="ClusterClass")].name`,description="ClusterClass that owns this template"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type KubeadmControlPlaneTemplate struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +optional
	Spec KubeadmControlPlaneTemplateSpec `json:"spec,omitempty,omitzero"`
}

// KubeadmControlPlaneTemplateList is a list of KubeadmControlPlaneTemplates.
//
// +kubebuilder:object:root=true
type KubeadmControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeadmControlPlaneTemplate `json:"items"`
}
