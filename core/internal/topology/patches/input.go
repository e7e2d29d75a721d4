package patches

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Input is what the patches of a class are applied to: the templates of the class and the objects that
// one Cluster is to have. Apply changes nothing in it but the specs of the Targets.
type Input struct {
	// Cluster has the topology; its variables are defaulted and valid.
	Cluster *clusterv1.Cluster
	// Class is the class the Engine was made from. Its status.variables decide which patch sees what.
	Class *clusterv1.ClusterClass

	InfrastructureCluster Template
	ControlPlane          ControlPlane
	MachineDeployments    []Workers
	MachinePools          []Workers
}

// Template is one template of the class and what the Cluster gets of it.
type Template struct {
	// Source is the template the class refers to.
	Source *unstructured.Unstructured
	// Target is the desired object made from Source: a template again for machines of a control plane
	// and of MachineDeployments, an object otherwise. It has the unpatched spec before Apply; a spec that
	// patches touched replaces it.
	Target *unstructured.Unstructured
}

// ControlPlane is the control plane's template with the desired control plane object as Target. The
// builtin variables come from that object: name, spec.version, spec.replicas and the name of
// spec.machineTemplate.infrastructureRef, as far as it has them.
type ControlPlane struct {
	Template
	// Machines is the template of the machines, for control planes that have any.
	Machines *Template
}

// Workers are a MachineDeployment or a MachinePool.
type Workers struct {
	// Class and TopologyName are from the topology of the Cluster.
	Class, TopologyName string
	// Name is that of the desired MachineDeployment or MachinePool.
	Name string
	// Version is the Kubernetes version it is to have now, which during an upgrade is not always that
	// of the Cluster.
	Version string
	// Replicas are nil when the topology leaves them open.
	Replicas *int32
	// BootstrapName and InfrastructureName are what the desired object refers to; empty when not known.
	BootstrapName, InfrastructureName string
	// Overrides are the variables set for these workers alone.
	Overrides []clusterv1.ClusterVariable

	Bootstrap, Infrastructure Template
}

// ForMachineDeployment takes what Workers need from a topology and the MachineDeployment desired for it.
func ForMachineDeployment(topology *clusterv1.MachineDeploymentTopology, desired *clusterv1.MachineDeployment, bootstrap, infrastructure Template) Workers {
	w := forMachines(&desired.Spec.Template.Spec)
	w.Class, w.TopologyName, w.Name = topology.Class, topology.Name, desired.Name
	w.Replicas = topology.Replicas
	if topology.Variables != nil {
		w.Overrides = topology.Variables.Overrides
	}
	w.Bootstrap, w.Infrastructure = bootstrap, infrastructure
	return w
}

// ForMachinePool takes what Workers need from a topology and the MachinePool desired for it.
func ForMachinePool(topology *clusterv1.MachinePoolTopology, desired *clusterv1.MachinePool, bootstrap, infrastructure Template) Workers {
	w := forMachines(&desired.Spec.Template.Spec)
	w.Class, w.TopologyName, w.Name = topology.Class, topology.Name, desired.Name
	w.Replicas = topology.Replicas
	if topology.Variables != nil {
		w.Overrides = topology.Variables.Overrides
	}
	w.Bootstrap, w.Infrastructure = bootstrap, infrastructure
	return w
}

func forMachines(machine *clusterv1.MachineSpec) Workers {
	w := Workers{InfrastructureName: machine.InfrastructureRef.Name}
	if machine.Version != nil {
		w.Version = *machine.Version
	}
	if machine.Bootstrap.ConfigRef != nil {
		w.BootstrapName = machine.Bootstrap.ConfigRef.Name
	}
	return w
}
