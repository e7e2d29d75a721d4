// Package v1alpha1 holds the API of the in-memory infrastructure provider, whose machines exist only inside the provider:
// InMemoryCluster, InMemoryMachine, InMemoryMachinePool and their templates, with the condition types, reasons, annotations and
// finalizers of these kinds.
//
// The simulation itself does not belong here; this package only depends on API machinery, so that any program can import
// it.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1alpha1
