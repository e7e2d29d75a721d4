package desired

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/core/internal/topology/upgrade"
)

// Blueprint is a class with the templates that a Cluster needs of it.
type Blueprint struct {
	Class *clusterv1.ClusterClass
	// Engine has the patches of Class.
	Engine *patches.Engine

	InfrastructureCluster *unstructured.Unstructured
	ControlPlane          *unstructured.Unstructured
	// ControlPlaneMachines is nil for control planes without machines.
	ControlPlaneMachines *unstructured.Unstructured
	// MachineDeployments and MachinePools have the templates by the name of the class of workers.
	MachineDeployments map[string]Templates
	MachinePools       map[string]Templates
}

// Templates are those of one class of workers.
type Templates struct {
	Bootstrap, Infrastructure *unstructured.Unstructured
}

// Current is what there is of a topology, as far as what is desired depends on it.
type Current struct {
	// ControlPlane is nil while it does not exist.
	ControlPlane *unstructured.Unstructured
	// MachineDeployments and MachinePools are by their name in the topology, without those being deleted.
	MachineDeployments map[string]*clusterv1.MachineDeployment
	MachinePools       map[string]*clusterv1.MachinePool
	// Leaving are the names of MachineDeployments and MachinePools that are being deleted.
	Leaving sets.Set[string]
}

// Input is what Compute needs.
type Input struct {
	// Cluster has variables that are defaulted and valid.
	Cluster   *clusterv1.Cluster
	Blueprint *Blueprint
	Current   *Current
	Versions  upgrade.Plan
}

// Objects are the objects that a Cluster is to have.
type Objects struct {
	InfrastructureCluster *unstructured.Unstructured
	ControlPlane          *unstructured.Unstructured
	// ControlPlaneMachines is the template of control plane machines, nil for control planes without.
	ControlPlaneMachines *unstructured.Unstructured
	// ControlPlaneHealthCheck is nil where there is to be none.
	ControlPlaneHealthCheck *clusterv1.MachineHealthCheck

	// MachineDeployments and MachinePools are in the order of the topology, without those that are to be created
	// later.
	MachineDeployments []*MachineDeployment
	MachinePools       []*MachinePool
	// Waiting are names in the topology of workers that cannot be created before an object that has their name and
	// is being deleted is gone.
	Waiting []string
}

// HasHealthChecks says whether there is to be any MachineHealthCheck.
func (o *Objects) HasHealthChecks() bool {
	return o.ControlPlaneHealthCheck != nil ||
		slices.ContainsFunc(o.MachineDeployments, func(md *MachineDeployment) bool { return md.HealthCheck != nil })
}

// MachineDeployment is a MachineDeployment and what belongs to it alone.
type MachineDeployment struct {
	// TopologyName is its name in the topology.
	TopologyName string
	Object       *clusterv1.MachineDeployment
	// Bootstrap and Infrastructure are the templates that Object refers to.
	Bootstrap, Infrastructure *unstructured.Unstructured
	// HealthCheck is nil where there is to be none.
	HealthCheck *clusterv1.MachineHealthCheck
}

// MachinePool is a MachinePool and what belongs to it alone.
type MachinePool struct {
	// TopologyName is its name in the topology.
	TopologyName string
	Object       *clusterv1.MachinePool
	// Bootstrap and Infrastructure are the objects that Object refers to.
	Bootstrap, Infrastructure *unstructured.Unstructured
}

// RefTo is a reference to an object.
func RefTo(u *unstructured.Unstructured) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}
