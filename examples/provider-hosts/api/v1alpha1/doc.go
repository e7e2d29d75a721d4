// Package v1alpha1 is the API of the provider for machines that exist already: Host is one of them, HostMachine claims one,
// HostCluster is the infrastructure of a Cluster on them.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds of this package.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Host{}, &HostList{},
		&HostCluster{}, &HostClusterList{}, &HostClusterTemplate{}, &HostClusterTemplateList{},
		&HostMachine{}, &HostMachineList{}, &HostMachineTemplate{}, &HostMachineTemplateList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
