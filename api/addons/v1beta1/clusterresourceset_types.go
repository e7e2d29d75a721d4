package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1beta2 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Names that are the same in all API versions. Package v1beta2 explains them.
const (
	ClusterResourceSetSecretType = addonsv1beta2.ClusterResourceSetSecretType
	ClusterResourceSetFinalizer  = addonsv1beta2.ClusterResourceSetFinalizer
)

// ClusterResourceSetSpec is what to apply to which clusters.
type ClusterResourceSetSpec struct {
	// clusterSelector selects Clusters in the same namespace by label. It must not be empty. Immutable.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`

	// resources are Secrets and ConfigMaps in the same namespace whose values are manifests.
	// +optional
	Resources []ResourceRef `json:"resources,omitempty"`

	// strategy is ApplyOnce or Reconcile. When unset, ApplyOnce. Immutable.
	// +optional
	// +kubebuilder:validation:Enum=ApplyOnce;Reconcile
	Strategy string `json:"strategy,omitempty"`
}

// ClusterResourceSetResourceKind is the kind of an object that holds manifests.
type ClusterResourceSetResourceKind string

const (
	// SecretClusterResourceSetResourceKind is a Secret of type ClusterResourceSetSecretType.
	SecretClusterResourceSetResourceKind ClusterResourceSetResourceKind = "Secret"
	// ConfigMapClusterResourceSetResourceKind is a ConfigMap.
	ConfigMapClusterResourceSetResourceKind ClusterResourceSetResourceKind = "ConfigMap"
)

// ResourceRef references an object that holds manifests.
type ResourceRef struct {
	// name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// kind is Secret or ConfigMap.
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind"`
}

// ClusterResourceSetStrategy is what happens after manifests have been applied once.
type ClusterResourceSetStrategy string

const (
	// ClusterResourceSetStrategyApplyOnce applies manifests once and never updates them. It is the default.
	ClusterResourceSetStrategyApplyOnce ClusterResourceSetStrategy = "ApplyOnce"
	// ClusterResourceSetStrategyReconcile applies manifests again when they change.
	ClusterResourceSetStrategyReconcile ClusterResourceSetStrategy = "Reconcile"
)

// SetTypedStrategy sets the strategy.
func (s *ClusterResourceSetSpec) SetTypedStrategy(strategy ClusterResourceSetStrategy) {
	s.Strategy = string(strategy)
}

// ClusterResourceSetStatus is the observed state of a ClusterResourceSet.
type ClusterResourceSetStatus struct {
	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the current conditions, set by the controllers.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`

	// v1beta2 is the part of the status that v1beta2 added, at the same paths below .status.
	// +optional
	V1Beta2 *ClusterResourceSetV1Beta2Status `json:"v1beta2,omitempty"`
}

// ClusterResourceSetV1Beta2Status is the part of the status of a ClusterResourceSet that v1beta2 added.
type ClusterResourceSetV1Beta2Status struct {
	// conditions are the current conditions, with the types and reasons of v1beta2.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterresourcesets,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ClusterResourceSet applies manifests to all Clusters that it selects.
type ClusterResourceSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterResourceSetSpec   `json:"spec,omitempty"`
	Status ClusterResourceSetStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of the ClusterResourceSet.
func (c *ClusterResourceSet) GetConditions() clusterv1.Conditions { return c.Status.Conditions }

// SetConditions replaces the conditions of the ClusterResourceSet.
func (c *ClusterResourceSet) SetConditions(conditions clusterv1.Conditions) {
	c.Status.Conditions = conditions
}

// GetV1Beta2Conditions returns the conditions that v1beta2 shows.
func (c *ClusterResourceSet) GetV1Beta2Conditions() []metav1.Condition {
	if c.Status.V1Beta2 == nil {
		return nil
	}
	return c.Status.V1Beta2.Conditions
}

// SetV1Beta2Conditions replaces the conditions that v1beta2 shows.
func (c *ClusterResourceSet) SetV1Beta2Conditions(conditions []metav1.Condition) {
	if c.Status.V1Beta2 == nil {
		c.Status.V1Beta2 = &ClusterResourceSetV1Beta2Status{}
	}
	c.Status.V1Beta2.Conditions = conditions
}

// +kubebuilder:object:root=true

// ClusterResourceSetList is a list of ClusterResourceSets.
type ClusterResourceSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceSet `json:"items"`
}
