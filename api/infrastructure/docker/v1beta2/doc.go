// Package v1beta2 holds the API of the providers for development and tests, version v1beta2: DevCluster, DevMachine,
// DevMachinePool and their templates, whose backend is Docker containers or a simulation in memory; and DockerCluster,
// DockerMachine, DockerMachinePool and their templates, which are older and have Docker only. The condition types, reasons and
// finalizers of these kinds are here, too.
//
// A field whose zero value is valid is a pointer, so that unset differs from false and 0; the kinds of Docker keep the exceptions
// of v1beta1.
//
// Nothing that talks to a container runtime belongs here; this package only depends on API machinery, so that any program
// can import it.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta2
