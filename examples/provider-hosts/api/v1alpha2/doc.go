// Package v1alpha2 has the kinds of the provider of which a field has another shape in contract v1beta2 than in contract v1beta1:
// status.failureDomains of HostClusters is a map in v1alpha1, and a list here. All other kinds are in v1alpha1 alone.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds of this package.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha2"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &HostCluster{}, &HostClusterList{}, &HostClusterTemplate{}, &HostClusterTemplateList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
