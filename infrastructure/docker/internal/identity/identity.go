// Package identity says which container belongs to which object: the names of containers, the labels that they get, and
// whether an existing container is that of an object.
//
// Containers carry the kind, namespace and name of their object, and its identity. The identity is the object's UID when its
// first container was created, kept in an annotation, because "clusterctl move" and restored backups change the UID. A
// container without these labels, or with those of another object, is never changed or removed, whatever its name.
//
// What does not belong here: requests to the container runtime.
package identity

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of containers that other programs know, too.
const (
	// ClusterLabel is the name of the Cluster.
	ClusterLabel = "io.x-k8s.kind.cluster"
	// RoleLabel is the role of the container: ControlPlane, Worker or LoadBalancer.
	RoleLabel = "io.x-k8s.kind.role"
	// FailureDomainLabel is the failure domain of a machine.
	FailureDomainLabel = "io.x-k8s.cluster.failureDomain"
	// PoolLabel is the name of the DockerMachinePool of a machine.
	PoolLabel = "docker.cluster.x-k8s.io/machine-pool"
)

// Labels that identify the object that a container belongs to.
const (
	// KindLabel is the kind of the object, such as DockerMachine.
	KindLabel = "docker.cluster.x-k8s.io/kind"
	// NamespaceLabel is the namespace of the object.
	NamespaceLabel = "docker.cluster.x-k8s.io/namespace"
	// NameLabel is the name of the object.
	NameLabel = "docker.cluster.x-k8s.io/name"
	// IdentityLabel is the identity of the object. See Of.
	IdentityLabel = "docker.cluster.x-k8s.io/identity"
)

// Annotation is the identity of an object. It survives "clusterctl move" and backups, which the UID does not.
const Annotation = "docker.cluster.x-k8s.io/identity"

// Role is what a container is in its cluster.
type Role string

// The roles of containers.
const (
	// ControlPlane is a machine of the control plane.
	ControlPlane Role = "control-plane"
	// Worker is a machine that is not part of the control plane.
	Worker Role = "worker"
	// LoadBalancer is the load balancer of the control plane.
	LoadBalancer Role = "external-load-balancer"
)

// Assign sets the annotation with the object's identity if it has none. It must be in the API server before the first container
// of the object is created, like the finalizer, with which it is written.
func Assign(o client.Object) {
	annotations := o.GetAnnotations()
	if annotations[Annotation] != "" {
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[Annotation] = string(o.GetUID())
	o.SetAnnotations(annotations)
}

// Of returns the identity of an object: its annotation, or else its UID.
func Of(o client.Object) string {
	if identity := o.GetAnnotations()[Annotation]; identity != "" {
		return identity
	}
	return string(o.GetUID())
}

// Labels returns the labels of a container of an object.
func Labels(kind string, o client.Object, cluster string, role Role) map[string]string {
	return map[string]string{
		ClusterLabel:   cluster,
		RoleLabel:      string(role),
		KindLabel:      kind,
		NamespaceLabel: o.GetNamespace(),
		NameLabel:      o.GetName(),
		IdentityLabel:  Of(o),
	}
}

// Object returns kind, namespace and name of the object that a container with these labels belongs to, empty if it is not a
// container of this provider.
func Object(labels map[string]string) (kind string, key types.NamespacedName) {
	return labels[KindLabel], types.NamespacedName{Namespace: labels[NamespaceLabel], Name: labels[NameLabel]}
}

// ConflictError reports that a container of the required name belongs to something else.
type ConflictError struct {
	// Container is the name of the container.
	Container string
	// Holder describes what the container belongs to.
	Holder string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("container %q belongs to %s: remove it, or use another name for this object", e.Container, e.Holder)
}

// Check returns a *ConflictError unless a container with these labels belongs to the object.
func Check(container string, labels map[string]string, kind string, o client.Object) error {
	holder, key := Object(labels)
	switch {
	case holder == "":
		return &ConflictError{Container: container, Holder: "something else than this provider"}
	case holder != kind || key != client.ObjectKeyFromObject(o):
		return &ConflictError{Container: container, Holder: fmt.Sprintf("%s %s", holder, key)}
	case labels[IdentityLabel] != Of(o):
		return &ConflictError{Container: container, Holder: fmt.Sprintf("another %s %s, of the past or of another management cluster", holder, key)}
	}
	return nil
}

// MachineContainer returns the name of the container of a machine: name of the Cluster and of the machine, without repeating
// the former.
func MachineContainer(cluster, machine string) string {
	if strings.HasPrefix(machine, cluster+"-") {
		return machine
	}
	return cluster + "-" + machine
}

// LoadBalancerContainer returns the name of the container of a Cluster's load balancer.
func LoadBalancerContainer(cluster string) string { return cluster + "-lb" }
