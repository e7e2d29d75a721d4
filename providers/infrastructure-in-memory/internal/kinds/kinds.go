// Package kinds is what the controllers know of the kinds whose objects they reconcile: InMemoryCluster and InMemoryMachine, or DevCluster
// and DevMachine with backend inMemory. What both have is behind one interface: what a controller sets is written as part of the object,
// whatever its kind.
//
// What does not belong here: what controllers do with an object.
package kinds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/kindset"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Cluster is the infrastructure of a cluster.
type Cluster struct {
	// Object is the whole object, and ObjectMeta its metadata.
	Object step.Object
	*metav1.ObjectMeta
	// Kind is the kind of the object, such as InMemoryCluster.
	Kind string
	ClusterFields
}

// ClusterFields are the fields of a cluster.
type ClusterFields interface {
	// Endpoint returns spec.controlPlaneEndpoint; what is not set is empty, or 0.
	Endpoint() (host string, port int)
	// SetEndpoint sets it.
	SetEndpoint(host string, port int)
	// RecordedPort returns the port that the provider recorded in the status; 0 if it did not, or if the kind has no such field.
	RecordedPort() int
	// Ready reports whether the cluster was ready before, and SetReady that it is.
	Ready() bool
	SetReady()
	// HostedControlPlane returns the control plane that does not run on machines; nil if there is none. Hosted records its version; empty:
	// none runs.
	HostedControlPlane() *inmemoryv1.HostedControlPlane
	Hosted(version string)
}

// Machine is a machine.
type Machine struct {
	// Object is the whole object, and ObjectMeta its metadata.
	Object step.Object
	*metav1.ObjectMeta
	MachineFields
}

// MachineFields are the fields of a machine.
type MachineFields interface {
	// ProviderID returns spec.providerID, empty if it is not set, and SetProviderID sets it.
	ProviderID() string
	SetProviderID(id string)
	// FailureDomain returns the failure domain that the provider chose; empty if it did not.
	FailureDomain() string
	// Behaviour returns how long the parts of the machine take to start, and BehaviourPath where that is in the object.
	Behaviour() *inmemoryv1.InMemoryMachineBehaviour
	BehaviourPath() string
	// Ready reports whether the machine has started before, and SetReady that it has.
	Ready() bool
	SetReady()
}

// Set is the kinds of objects that belong together.
type Set = kindset.Set[Cluster, Machine]
