// Package v1beta2 holds the kinds of the API group ipam.cluster.x-k8s.io: IPAddressClaim, with which
// infrastructure providers request an address, and IPAddress, with which IPAM providers respond. Pools are kinds of the
// IPAM providers and do not belong here.
//
// +kubebuilder:object:generate=true
// +groupName=ipam.cluster.x-k8s.io
package v1beta2
