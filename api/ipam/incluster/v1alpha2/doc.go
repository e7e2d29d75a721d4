// Package v1alpha2 holds the API of the in-cluster IPAM provider, which allocates the addresses of IPAddressClaims from pools in the
// management cluster: InClusterIPPool and GlobalInClusterIPPool, with the reasons of conditions and the finalizers that the provider
// sets.
//
// The claims and the allocated addresses are in the version v1beta1 of the same API group, in package api/ipam/v1beta1.
//
// +kubebuilder:object:generate=true
// +groupName=ipam.cluster.x-k8s.io
package v1alpha2
