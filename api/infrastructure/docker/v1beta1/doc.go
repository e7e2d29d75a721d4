// Package v1beta1 holds the API of the Docker infrastructure provider, whose machines are containers: DockerCluster,
// DockerMachine, DockerMachinePool and their templates, with the condition types, reasons and finalizers of these kinds; and of
// their successors DevCluster, DevMachine and their templates, whose machines may also be simulated.
//
// Nothing that talks to a container runtime belongs here; this package only depends on API machinery, so that any program
// can import it.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1
