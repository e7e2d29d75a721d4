// Package v1alpha1 holds the kinds of the API group ipam.cluster.x-k8s.io in the version that older clients use. They
// have the shape of v1beta1, in which they are stored, so that converting one to the other only changes the apiVersion.
// New code uses v1beta1.
//
// +kubebuilder:object:generate=true
// +groupName=ipam.cluster.x-k8s.io
package v1alpha1
