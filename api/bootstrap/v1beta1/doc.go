// Package v1beta1 holds the API of the kubeadm bootstrap provider: KubeadmConfig, its template, and the subset of kubeadm's
// own configuration that can be embedded in them, together with the condition types and reasons of these kinds.
//
// Defaulting, validation and the rendering of bootstrap data do not belong here; this package only depends on API
// machinery, so that any program can import it.
//
// +kubebuilder:object:generate=true
// +groupName=bootstrap.cluster.x-k8s.io
package v1beta1
