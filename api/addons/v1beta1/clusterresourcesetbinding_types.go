package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceBinding records the application of one object's manifests.
type ResourceBinding struct {
	// ResourceRef references the object that holds the manifests.
	ResourceRef `json:",inline"`

	// hash is the hash of the object's values when they were last applied, to detect changes.
	// +optional
	Hash string `json:"hash,omitempty"`

	// lastAppliedTime is when the manifests were last applied, successfully or not.
	// +optional
	LastAppliedTime *metav1.Time `json:"lastAppliedTime,omitempty"`

	// applied is true when applying them succeeded.
	Applied bool `json:"applied"`
}

// ResourceSetBinding records what one ClusterResourceSet applied to the cluster.
type ResourceSetBinding struct {
	// clusterResourceSetName is the name of the ClusterResourceSet.
	ClusterResourceSetName string `json:"clusterResourceSetName"`

	// resources has one entry per object with manifests.
	// +optional
	Resources []ResourceBinding `json:"resources,omitempty"`
}

// ClusterResourceSetBindingSpec records what was applied to one cluster.
type ClusterResourceSetBindingSpec struct {
	// bindings has one entry per ClusterResourceSet that selects the cluster.
	// +optional
	Bindings []*ResourceSetBinding `json:"bindings,omitempty"`

	// clusterName is the name of the Cluster, in the same namespace. Immutable once set.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterresourcesetbindings,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ClusterResourceSetBinding records what ClusterResourceSets applied to the Cluster of the same name.
type ClusterResourceSetBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterResourceSetBindingSpec `json:"spec,omitempty"`
}

// +kubebuilder:object:root=true

// ClusterResourceSetBindingList is a list of ClusterResourceSetBindings.
type ClusterResourceSetBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceSetBinding `json:"items"`
}

// GetOrCreateBinding returns the record of a ClusterResourceSet, adding an empty one when there is none.
func (b *ClusterResourceSetBinding) GetOrCreateBinding(set *ClusterResourceSet) *ResourceSetBinding {
	for _, binding := range b.Spec.Bindings {
		if binding.ClusterResourceSetName == set.Name {
			return binding
		}
	}
	binding := &ResourceSetBinding{ClusterResourceSetName: set.Name}
	b.Spec.Bindings = append(b.Spec.Bindings, binding)
	return binding
}

// RemoveBinding removes the record of a ClusterResourceSet, if there is one.
func (b *ClusterResourceSetBinding) RemoveBinding(set *ClusterResourceSet) {
	for i, binding := range b.Spec.Bindings {
		if binding.ClusterResourceSetName == set.Name {
			b.Spec.Bindings = append(b.Spec.Bindings[:i], b.Spec.Bindings[i+1:]...)
			return
		}
	}
}

// GetResource returns the record of an object with manifests, or nil.
func (r *ResourceSetBinding) GetResource(ref ResourceRef) *ResourceBinding {
	for i := range r.Resources {
		if r.Resources[i].ResourceRef == ref {
			return &r.Resources[i]
		}
	}
	return nil
}

// IsApplied is true when the manifests of the object have been applied successfully.
func (r *ResourceSetBinding) IsApplied(ref ResourceRef) bool {
	resource := r.GetResource(ref)
	return resource != nil && resource.Applied
}

// SetBinding sets the record of an object with manifests, and replaces an earlier one of the same object.
func (r *ResourceSetBinding) SetBinding(record ResourceBinding) {
	if existing := r.GetResource(record.ResourceRef); existing != nil {
		*existing = record
		return
	}
	r.Resources = append(r.Resources, record)
}
