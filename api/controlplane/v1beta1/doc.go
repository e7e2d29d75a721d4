// Package v1beta1 holds the API of the kubeadm control plane provider: KubeadmControlPlane and its template, together with
// the condition types, reasons, annotations and failure reasons of these kinds and of the Machines they own.
//
// Defaulting, validation and reconciling do not belong here; this package only depends on API machinery, so that any
// program can import it.
//
// +kubebuilder:object:generate=true
// +groupName=controlplane.cluster.x-k8s.io
package v1beta1
