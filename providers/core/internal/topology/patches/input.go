package patches

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
)

// Input has the templates of a class, and the desired objects of one Cluster. Apply changes only specs, labels
// and annotations of the Targets.
type Input struct {
	// Cluster has a topology with defaulted and valid variables.
	Cluster *clusterv1.Cluster
	// Class is the class that the Engine was compiled from. Its status.variables determine which variables are visible to
	// which patch.
	Class *clusterv1.ClusterClass
	// Sources are those of the values of the Cluster.
	Sources variables.Sources

	InfrastructureCluster Template
	ControlPlane          ControlPlane
	MachineDeployments    []Workers
	MachinePools          []Workers
}

// Template is a template of the class and the desired object that is created from it.
type Template struct {
	// Source is the template in the class.
	Source *unstructured.Unstructured
	// Target is the desired object: a template for machines of the control plane and of MachineDeployments, another object
	// otherwise. It has the unpatched spec before Apply, which Apply replaces if a patch changes the template.
	Target *unstructured.Unstructured
}

// ControlPlane is the control plane's template, with the desired control plane object as Target. The builtin variables are read
// from that object: name, spec.version and the name of spec.machineTemplate.infrastructureRef, if they are set.
type ControlPlane struct {
	Template
	// Machines is the template of the machines, nil for control planes without machines.
	Machines *Template
}

// Workers is a MachineDeployment or a MachinePool.
type Workers struct {
	// Class and TopologyName are those in the topology of the Cluster.
	Class, TopologyName string
	// Name is the name of the desired MachineDeployment or MachinePool.
	Name string
	// Version is the desired Kubernetes version, which may be older than that of the Cluster during an upgrade.
	Version string
	// Metadata is that of the workers in the topology.
	Metadata clusterv1.ObjectMeta
	// Replicas are nil if the topology does not set them.
	Replicas *int32
	// BootstrapName and InfrastructureName are the names that the desired object refers to; empty if unknown.
	BootstrapName, InfrastructureName string
	// Overrides are the variables of these workers.
	Overrides []clusterv1.ClusterVariable

	Bootstrap, Infrastructure Template
}

// ForMachineDeployment returns Workers of a MachineDeployment.
func ForMachineDeployment(
	topology *clusterv1.MachineDeploymentTopology, desired *clusterv1.MachineDeployment, bootstrap, infrastructure Template,
) Workers {
	w := forMachines(&desired.Spec.Template.Spec)
	w.Class, w.TopologyName, w.Name = topology.Class, topology.Name, desired.Name
	w.Replicas, w.Metadata = topology.Replicas, topology.Metadata
	w.Overrides = topology.Variables.Overrides
	w.Bootstrap, w.Infrastructure = bootstrap, infrastructure
	return w
}

// ForMachinePool returns Workers of a MachinePool.
func ForMachinePool(topology *clusterv1.MachinePoolTopology, desired *clusterv1.MachinePool, bootstrap, infrastructure Template) Workers {
	w := forMachines(&desired.Spec.Template.Spec)
	w.Class, w.TopologyName, w.Name = topology.Class, topology.Name, desired.Name
	w.Replicas, w.Metadata = topology.Replicas, topology.Metadata
	w.Overrides = topology.Variables.Overrides
	w.Bootstrap, w.Infrastructure = bootstrap, infrastructure
	return w
}

func forMachines(machine *clusterv1.MachineSpec) Workers {
	return Workers{
		Version: machine.Version, BootstrapName: machine.Bootstrap.ConfigRef.Name, InfrastructureName: machine.InfrastructureRef.Name,
	}
}
