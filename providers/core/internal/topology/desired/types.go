package desired

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
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
	// MachineDeployments and MachinePools hold the templates by class of workers.
	MachineDeployments map[string]Templates
	MachinePools       map[string]Templates
}

// Templates are the templates of a class of workers.
type Templates struct {
	Bootstrap, Infrastructure *unstructured.Unstructured
}

// Current are the current objects that the desired ones depend on.
type Current struct {
	// ControlPlane is nil if it does not exist.
	ControlPlane *unstructured.Unstructured
	// MachineDeployments and MachinePools hold objects by their topology name, without those that are being deleted.
	MachineDeployments map[string]*clusterv1.MachineDeployment
	MachinePools       map[string]*clusterv1.MachinePool
	// Terminating are the names of MachineDeployments and MachinePools that are being deleted.
	Terminating sets.Set[string]
}

// Input is the input of Compute.
type Input struct {
	// Cluster has defaulted and valid variables.
	Cluster   *clusterv1.Cluster
	Blueprint *Blueprint
	Current   *Current
	Versions  upgrade.Plan
}

// Objects are the desired objects of a Cluster.
type Objects struct {
	InfrastructureCluster *unstructured.Unstructured
	ControlPlane          *unstructured.Unstructured
	// ControlPlaneMachines is the template of control plane machines, nil for control planes without machines.
	ControlPlaneMachines *unstructured.Unstructured
	// ControlPlaneHealthCheck is nil if the control plane has no health check.
	ControlPlaneHealthCheck *clusterv1.MachineHealthCheck
	// ControlPlaneOnHold is set if the control plane waits for its upgrade. Nothing of it is changed until then, its template and
	// health check included: otherwise, it would be rolled out now, and again by the upgrade.
	ControlPlaneOnHold bool

	// MachineDeployments and MachinePools are in the order of the topology, without those that are created later.
	MachineDeployments []*MachineDeployment
	MachinePools       []*MachinePool
	// DeploymentsWaiting and PoolsWaiting are the topology names of MachineDeployments and MachinePools that cannot be created
	// until an object with their name has been deleted.
	DeploymentsWaiting, PoolsWaiting []string
}

// MachineDeployment is a MachineDeployment with its templates and health check.
type MachineDeployment struct {
	// TopologyName is its name in the topology.
	TopologyName string
	Object       *clusterv1.MachineDeployment
	// Bootstrap and Infrastructure are the templates that Object refers to.
	Bootstrap, Infrastructure *unstructured.Unstructured
	// HealthCheck is nil if it has no health check.
	HealthCheck *clusterv1.MachineHealthCheck
	// OnHold is set if it waits for its upgrade: see Objects.ControlPlaneOnHold.
	OnHold bool
}

// MachinePool is a MachinePool with its bootstrap and infrastructure objects.
type MachinePool struct {
	// TopologyName is its name in the topology.
	TopologyName string
	Object       *clusterv1.MachinePool
	// Bootstrap and Infrastructure are the objects that Object refers to.
	Bootstrap, Infrastructure *unstructured.Unstructured
	// OnHold is set if it waits for its upgrade: see Objects.ControlPlaneOnHold.
	OnHold bool
}

// RefTo returns a reference to an object.
func RefTo(u *unstructured.Unstructured) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}
