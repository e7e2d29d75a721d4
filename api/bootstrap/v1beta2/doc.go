// Package v1beta2 holds the API of the kubeadm bootstrap provider, version v1beta2: KubeadmConfig, its template, and the subset
// of kubeadm's own configuration that can be embedded in them, together with the condition types and reasons of these kinds.
//
// A field whose zero value is valid is a pointer, so that unset differs from false, 0 and "". All other fields are values that
// are absent when zero, structs too.
//
// Defaulting, validation, conversion and the rendering of bootstrap data do not belong here; this package only depends on API
// machinery, so that any program can import it.
//
// +kubebuilder:object:generate=true
// +groupName=bootstrap.cluster.x-k8s.io
package v1beta2
