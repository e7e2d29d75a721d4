package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// ClusterResourceSetSecretType is the type of Secrets that a ClusterResourceSet may apply.
	ClusterResourceSetSecretType corev1.SecretType = "addons.cluster.x-k8s.io/resource-set"

	// ClusterResourceSetFinalizer blocks the deletion of a ClusterResourceSet until it has been removed from all
	// bindings.
	ClusterResourceSetFinalizer = "addons.cluster.x-k8s.io"
)

// ClusterResourceSetSpec is what to apply to which clusters.
type ClusterResourceSetSpec struct {
	// clusterSelector selects Clusters in the same namespace by label. It must not be empty. Immutable.
	// +required
	ClusterSelector metav1.LabelSelector `json:"clusterSelector,omitempty,omitzero"`

	// resources are Secrets and ConfigMaps in the same namespace whose values are manifests.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
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
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// kind is Secret or ConfigMap.
	// +required
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind,omitempty"`
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
// +kubebuilder:validation:MinProperties=1
type ClusterResourceSetStatus struct {
	// conditions are the current conditions: ResourcesApplied and Paused.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the latest metadata.generation observed by the controller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *ClusterResourceSetDeprecatedStatus `json:"deprecated,omitempty"`
}

// ClusterResourceSetDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type ClusterResourceSetDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *ClusterResourceSetV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// ClusterResourceSetV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type ClusterResourceSetV1Beta1DeprecatedStatus struct {
	// conditions are the conditions of v1beta1, with severities.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterresourcesets,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Applied",type="string",JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].status`,description="Whether everything has been applied"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether the ClusterResourceSet is paused",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ClusterResourceSet applies manifests to all Clusters that it selects.
type ClusterResourceSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec ClusterResourceSetSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status ClusterResourceSetStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the ClusterResourceSet.
func (c *ClusterResourceSet) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the ClusterResourceSet.
func (c *ClusterResourceSet) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (c *ClusterResourceSet) GetV1Beta1Conditions() clusterv1.Conditions {
	if c.Status.Deprecated == nil || c.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return c.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (c *ClusterResourceSet) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	if len(conditions) == 0 && len(c.GetV1Beta1Conditions()) == 0 {
		return
	}
	if c.Status.Deprecated == nil {
		c.Status.Deprecated = &ClusterResourceSetDeprecatedStatus{}
	}
	if c.Status.Deprecated.V1Beta1 == nil {
		c.Status.Deprecated.V1Beta1 = &ClusterResourceSetV1Beta1DeprecatedStatus{}
	}
	c.Status.Deprecated.V1Beta1.Conditions = conditions
}

// +kubebuilder:object:root=true

// ClusterResourceSetList is a list of ClusterResourceSets.
type ClusterResourceSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceSet `json:"items"`
}
