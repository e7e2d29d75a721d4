// Package kinds is what the controllers know of the kinds whose objects they reconcile: DockerCluster and DockerMachine, or DevCluster and
// DevMachine with backend docker. A controller works on the parts that both kinds have, which are pointers into the object: what it sets is
// written as part of the object, whatever its kind.
//
// What does not belong here: what controllers do with an object.
package kinds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kindset"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Cluster is the infrastructure of a cluster.
type Cluster struct {
	// Object is the whole object, and ObjectMeta its metadata.
	Object step.Object
	*metav1.ObjectMeta
	// Kind is the kind of the object, such as DockerCluster.
	Kind string
	// Spec is the part of the spec that is about containers, and Path where it is in the object.
	Spec *dockerv1.DockerClusterBackendSpec
	Path string
	// Endpoint is spec.controlPlaneEndpoint; the others are fields of the status.
	Endpoint       *clusterv1.APIEndpoint
	Initialization *dockerv1.InitializationStatus
	FailureDomains *[]clusterv1.FailureDomain
}

// Machine is a machine.
type Machine struct {
	// Object is the whole object, and ObjectMeta its metadata.
	Object step.Object
	*metav1.ObjectMeta
	// Kind is the kind of the object, such as DockerMachine.
	Kind string
	// Spec is the part of the spec that is about the container, and Path where it is in the object.
	Spec *dockerv1.DockerMachineBackendSpec
	Path string
	// ProviderID is spec.providerID; the others are fields of the status.
	ProviderID     *string
	Initialization *dockerv1.InitializationStatus
	Addresses      *[]clusterv1.MachineAddress
	// LoadBalancerConfigured is status.loadBalancerConfigured, which the controller of clusters writes.
	LoadBalancerConfigured bool
}

// Set is the kinds of objects that belong together.
type Set = kindset.Set[Cluster, Machine]
