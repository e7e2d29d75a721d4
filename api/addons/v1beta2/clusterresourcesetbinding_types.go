package v1beta2

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceBinding records the application of one object's manifests.
type ResourceBinding struct {
	// ResourceRef references the object that holds the manifests.
	ResourceRef `json:",inline"`

	// hash is the hash of the object's values when they were last applied, to detect changes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Hash string `json:"hash,omitempty"`

	// lastAppliedTime is when the manifests were last applied, successfully or not.
	// +optional
	LastAppliedTime metav1.Time `json:"lastAppliedTime,omitempty,omitzero"`

	// applied is true when applying them succeeded.
	// +required
	Applied *bool `json:"applied,omitempty"`
}

// ResourceSetBinding records what one ClusterResourceSet applied to the cluster.
type ResourceSetBinding struct {
	// clusterResourceSetName is the name of the ClusterResourceSet.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClusterResourceSetName string `json:"clusterResourceSetName,omitempty"`

	// resources has one entry per object with manifests.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Resources []ResourceBinding `json:"resources,omitempty"`
}

// ClusterResourceSetBindingSpec records what was applied to one cluster.
type ClusterResourceSetBindingSpec struct {
	// bindings has one entry per ClusterResourceSet that selects the cluster.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Bindings []ResourceSetBinding `json:"bindings,omitempty"`

	// clusterName is the name of the Cluster, in the same namespace. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterresourcesetbindings,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.clusterName",description="Cluster the ClusterResourceSetBinding belongs to"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// ClusterResourceSetBinding records what ClusterResourceSets applied to the Cluster of the same name.
type ClusterResourceSetBinding struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec ClusterResourceSetBindingSpec `json:"spec,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// ClusterResourceSetBindingList is a list of ClusterResourceSetBindings.
type ClusterResourceSetBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceSetBinding `json:"items"`
}

// GetOrCreateBinding returns the record of a ClusterResourceSet, adding an empty one when there is none. It is valid
// until bindings
// are added or removed.
func (c *ClusterResourceSetBinding) GetOrCreateBinding(set *ClusterResourceSet) *ResourceSetBinding {
	for i := range c.Spec.Bindings {
		if c.Spec.Bindings[i].ClusterResourceSetName == set.Name {
			return &c.Spec.Bindings[i]
		}
	}
	c.Spec.Bindings = append(c.Spec.Bindings, ResourceSetBinding{ClusterResourceSetName: set.Name})
	return &c.Spec.Bindings[len(c.Spec.Bindings)-1]
}

// RemoveBinding removes the record of a ClusterResourceSet, if there is one.
func (c *ClusterResourceSetBinding) RemoveBinding(set *ClusterResourceSet) {
	c.Spec.Bindings = slices.DeleteFunc(c.Spec.Bindings, func(b ResourceSetBinding) bool { return b.ClusterResourceSetName == set.Name })
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

// IsApplied reports whether the manifests of the object have been applied successfully.
func (r *ResourceSetBinding) IsApplied(ref ResourceRef) bool {
	resource := r.GetResource(ref)
	return resource != nil && resource.Applied != nil && *resource.Applied
}

// SetBinding sets the record of an object with manifests, and replaces an earlier one of the same object.
func (r *ResourceSetBinding) SetBinding(record ResourceBinding) {
	if existing := r.GetResource(record.ResourceRef); existing != nil {
		*existing = record
		return
	}
	r.Resources = append(r.Resources, record)
}
