package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// KubeadmConfigTemplateSpec wraps the template.
type KubeadmConfigTemplateSpec struct {
	// template is the template of KubeadmConfigs.
	Template KubeadmConfigTemplateResource `json:"template"`
}

// KubeadmConfigTemplateResource is the template of KubeadmConfigs.
type KubeadmConfigTemplateResource struct {
	// metadata holds the labels and annotations of every KubeadmConfig.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every KubeadmConfig.
	// +optional
	Spec KubeadmConfigSpec `json:"spec,omitempty"`
}

// KubeadmConfigTemplate is cloned into one KubeadmConfig per machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubeadmconfigtemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type KubeadmConfigTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec KubeadmConfigTemplateSpec `json:"spec,omitempty"`
}

// KubeadmConfigTemplateList is a list of KubeadmConfigTemplates.
//
// +kubebuilder:object:root=true
type KubeadmConfigTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeadmConfigTemplate `json:"items"`
}
