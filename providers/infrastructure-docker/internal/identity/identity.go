// Package identity says which container belongs to which object: the names of containers, the labels that they get, and
// whether an existing container is that of an object.
//
// Containers carry the kind, namespace and name of their object, and its identity. The identity is the object's UID when its
// first container was created, kept in an annotation, because "clusterctl move" and restored backups change the UID. A
// container without these labels, or with those of another object, is never changed or removed, whatever its name. The only
// exception are containers that Cluster API v1.7 created, for objects that had one before: see Claim.Had.
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
	// PoolLabel is the name of the infrastructure pool of a machine.
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

// Network is the network of all containers, the same that kind uses.
const Network = "kind"

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

// Claim is what an object says about a container.
type Claim struct {
	// Kind is the kind of the object, such as DockerMachine.
	Kind string
	// Object is the object.
	Object client.Object
	// Cluster is the name of the Cluster, and Role the role of the container in it.
	Cluster string
	Role    Role
	// Had reports whether the object shows that it had its container before, for example by its provider ID. It then may have
	// been created by Cluster API v1.7, which only sets ClusterLabel and RoleLabel.
	Had bool
}

// Labels returns the labels of a new container.
func (c Claim) Labels() map[string]string {
	return map[string]string{
		ClusterLabel:   c.Cluster,
		RoleLabel:      string(c.Role),
		KindLabel:      c.Kind,
		NamespaceLabel: c.Object.GetNamespace(),
		NameLabel:      c.Object.GetName(),
		IdentityLabel:  Of(c.Object),
	}
}

// Check returns a *ConflictError unless a container with these labels belongs to the object.
func (c Claim) Check(container string, labels map[string]string) error {
	holder, key := Object(labels)
	switch {
	case holder == "" && c.Had && labels[ClusterLabel] == c.Cluster && labels[RoleLabel] == string(c.Role):
		return nil
	case holder == "":
		return &ConflictError{Container: container, Holder: "something other than this provider"}
	case holder != c.Kind || key != client.ObjectKeyFromObject(c.Object):
		return &ConflictError{Container: container, Holder: fmt.Sprintf("%s %s", holder, key)}
	case labels[IdentityLabel] != Of(c.Object):
		return &ConflictError{Container: container, Holder: fmt.Sprintf("a deleted %s %s, or one of another management cluster", holder, key)}
	}
	return nil
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

// MachineContainer returns the name of the container of a machine: name of the Cluster and of the machine, without repeating
// that of the Cluster.
func MachineContainer(cluster, machine string) string {
	if strings.HasPrefix(machine, cluster+"-") {
		return machine
	}
	return cluster + "-" + machine
}

// LoadBalancerContainer returns the name of the container of a Cluster's load balancer.
func LoadBalancerContainer(cluster string) string { return cluster + "-lb" }
