package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IPAddressSpec is the address and its origin. Immutable.
type IPAddressSpec struct {
	// claimRef references the IPAddressClaim of the address, in the same namespace.
	ClaimRef corev1.LocalObjectReference `json:"claimRef"`

	// poolRef references the pool of the address, in the same namespace.
	PoolRef corev1.TypedLocalObjectReference `json:"poolRef"`

	// address is an IPv4 or IPv6 address.
	Address string `json:"address"`

	// prefix is the length of the network's prefix in bits: 0 to 32 for IPv4, 0 to 128 for IPv6.
	Prefix int `json:"prefix"`

	// gateway is the address of the network's gateway.
	// +optional
	Gateway string `json:"gateway,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=ipaddresses,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Address",type="string",JSONPath=".spec.address",description="The address itself"
// +kubebuilder:printcolumn:name="Pool Name",type="string",JSONPath=".spec.poolRef.name",description="Name of the pool the address comes from"
// +kubebuilder:printcolumn:name="Pool Kind",type="string",JSONPath=".spec.poolRef.kind",description="Kind of the pool the address comes from"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// IPAddress is an address allocated by an IPAM provider. It has the name of its claim.
type IPAddress struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec IPAddressSpec `json:"spec,omitempty"`
}

// +kubebuilder:object:root=true

// IPAddressList is a list of IPAddresses.
type IPAddressList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IPAddress `json:"items"`
}
