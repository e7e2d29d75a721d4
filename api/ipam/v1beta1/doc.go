// Package v1beta1 holds the kinds of the API group ipam.cluster.x-k8s.io, as they are stored: IPAddressClaim, by which
// infrastructure providers ask for an address, and IPAddress, by which IPAM providers answer. The pools that addresses
// come from are kinds of the IPAM providers and do not belong here.
//
// +kubebuilder:object:generate=true
// +groupName=ipam.cluster.x-k8s.io
package v1beta1
