// Package v1beta2 holds the API of the kubeadm control plane provider, version v1beta2: KubeadmControlPlane and its template,
// together with the condition types, reasons and annotations of these kinds and of the Machines they own.
//
// A field whose zero value is valid is a pointer, so that unset differs from false, 0 and "". All other fields are values that
// are absent when zero, structs too.
//
// Defaulting, validation, conversion and reconciling do not belong here; this package only depends on API machinery, so that
// any program can import it.
//
// +kubebuilder:object:generate=true
// +groupName=controlplane.cluster.x-k8s.io
package v1beta2
