package desired

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// Blueprint is a class with the templates that a Cluster uses.
type Blueprint struct {
	Class *clusterv1.ClusterClass
	// Engine applies the patches of Class.
	Engine *patches.Engine

	InfrastructureCluster *unstructured.Unstructured
	ControlPlane          *unstructured.Unstructured
	// ControlPlaneMachines is nil for control planes without machines.
	ControlPlaneMachines *unstructured.Unstructured
	// Workers holds the templates by class of workers: the kind of the workers, and the name of the class.
	Workers map[WorkersID]Templates
}

// Templates are the templates of a class of workers.
type Templates struct {
	Bootstrap, Infrastructure *unstructured.Unstructured
}

// Current are the current objects that the desired ones depend on.
type Current struct {
	// ControlPlane is nil if it does not exist.
	ControlPlane *unstructured.Unstructured
	// Contract is the version of the contract that the control plane follows, or will if it does not exist.
	Contract contract.Version
	// Workers holds objects by their topology name, without those that are being deleted.
	Workers map[WorkersID]WorkersObject
	// Terminating are the names of MachineDeployments and MachinePools that are being deleted.
	Terminating sets.Set[string]
}

// Input is the input of Compute.
type Input struct {
	// Cluster has defaulted and valid variables, with Sources.
	Cluster   *clusterv1.Cluster
	Sources   variables.Sources
	Blueprint *Blueprint
	Current   *Current
	Versions  upgrade.Plan
}

// Objects are the desired objects of a Cluster.
type Objects struct {
	InfrastructureCluster *unstructured.Unstructured
	ControlPlane          *unstructured.Unstructured
	// Contract is the version of the contract that the control plane follows.
	Contract contract.Version
	// ControlPlaneMachines is the template of control plane machines, nil for control planes without machines.
	ControlPlaneMachines *unstructured.Unstructured
	// ControlPlaneHealthCheck is nil if the control plane has no health check.
	ControlPlaneHealthCheck *clusterv1.MachineHealthCheck
	// ControlPlaneOnHold is set if the control plane waits for its upgrade. Nothing of it is changed until then, its template and
	// health check included: otherwise, it would be rolled out now, and again by the upgrade.
	ControlPlaneOnHold bool

	// Workers are in the order of the topology, MachineDeployments first, without those that are created later.
	Workers []*Workers
	// DeploymentsWaiting and PoolsWaiting are the topology names of MachineDeployments and MachinePools that cannot be created
	// until an object with their name has been deleted.
	DeploymentsWaiting, PoolsWaiting []string
}

// controlPlane returns the desired control plane.
func (o *Objects) controlPlane() contract.ControlPlane {
	return contract.ControlPlaneOf(contract.Object{Unstructured: o.ControlPlane, Contract: o.Contract})
}

// SetMachines sets the reference of the control plane to the template of its machines.
func (o *Objects) SetMachines(ref *corev1.ObjectReference) error {
	return o.controlPlane().SetInfrastructureRef(ref)
}

// Fields returns the fields of the current control plane, which must exist.
func (c *Current) Fields() contract.ControlPlane {
	return contract.ControlPlaneOf(contract.Object{Unstructured: c.ControlPlane, Contract: c.Contract})
}

// ContractRefTo returns a reference to an object, as objects of this group have it.
func ContractRefTo(u *unstructured.Unstructured) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: u.GroupVersionKind().Group, Kind: u.GetKind(), Name: u.GetName()}
}

// RefTo returns a reference to an object in its version.
func RefTo(u *unstructured.Unstructured) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}
