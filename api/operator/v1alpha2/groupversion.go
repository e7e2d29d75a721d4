package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "operator.cluster.x-k8s.io", Version: "v1alpha2"}

// Names of the kinds of this package, as they appear in manifests and references.
const (
	CoreProviderKind             = "CoreProvider"
	BootstrapProviderKind        = "BootstrapProvider"
	ControlPlaneProviderKind     = "ControlPlaneProvider"
	InfrastructureProviderKind   = "InfrastructureProvider"
	AddonProviderKind            = "AddonProvider"
	IPAMProviderKind             = "IPAMProvider"
	RuntimeExtensionProviderKind = "RuntimeExtensionProvider"
)

// AddToScheme registers the kinds of this package, and their lists, in the scheme.
func AddToScheme(s *runtime.Scheme) error {
	return (&runtime.SchemeBuilder{addKnownTypes}).AddToScheme(s)
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&CoreProvider{}, &CoreProviderList{},
		&BootstrapProvider{}, &BootstrapProviderList{},
		&ControlPlaneProvider{}, &ControlPlaneProviderList{},
		&InfrastructureProvider{}, &InfrastructureProviderList{},
		&AddonProvider{}, &AddonProviderList{},
		&IPAMProvider{}, &IPAMProviderList{},
		&RuntimeExtensionProvider{}, &RuntimeExtensionProviderList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
