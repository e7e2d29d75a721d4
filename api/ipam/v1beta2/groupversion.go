package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "ipam.cluster.x-k8s.io", Version: "v1beta2"}

// Names of the kinds of this package, as they appear in manifests and references.
const (
	// IPAddressKind is the kind of IPAddress.
	IPAddressKind = "IPAddress"
	// IPAddressClaimKind is the kind of IPAddressClaim.
	IPAddressClaimKind = "IPAddressClaim"
)

// AddToScheme registers the kinds of this package, and their lists, in the scheme.
func AddToScheme(s *runtime.Scheme) error {
	return (&runtime.SchemeBuilder{addKnownTypes}).AddToScheme(s)
}

// Resource qualifies a resource name with this group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&IPAddress{}, &IPAddressList{},
		&IPAddressClaim{}, &IPAddressClaimList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
