package webhook

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/taint"
)

// taints are the taints of one field.
type taints struct {
	path   *field.Path
	taints []clusterv1.MachineTaint
}

// checkTaints validates the taints in all fields of an object. Those that the old object has in any field are valid.
func checkTaints(enabled bool, old, current []taints) field.ErrorList {
	var before []clusterv1.MachineTaint
	for _, f := range old {
		before = append(before, f.taints...)
	}
	var errs field.ErrorList
	for _, f := range current {
		errs = append(errs, taint.Check(enabled, before, f.taints, f.path)...)
	}
	return errs
}

// topologyTaints returns the taints in the topology of a Cluster, which may be nil.
func topologyTaints(cluster *clusterv1.Cluster) []taints {
	if cluster == nil {
		return nil
	}
	topology, path := &cluster.Spec.Topology, field.NewPath("spec", "topology")
	workers := path.Child("workers")
	all := []taints{{path.Child("controlPlane", "taints"), topology.ControlPlane.Taints}}
	for i := range topology.Workers.MachineDeployments {
		all = append(all, taints{workers.Child("machineDeployments").Index(i).Child("taints"), topology.Workers.MachineDeployments[i].Taints})
	}
	for i := range topology.Workers.MachinePools {
		all = append(all, taints{workers.Child("machinePools").Index(i).Child("taints"), topology.Workers.MachinePools[i].Taints})
	}
	return all
}

// classTaints returns the taints in a class, which may be nil.
func classTaints(class *clusterv1.ClusterClass) []taints {
	if class == nil {
		return nil
	}
	path := field.NewPath("spec")
	workers := path.Child("workers")
	all := []taints{{path.Child("controlPlane", "taints"), class.Spec.ControlPlane.Taints}}
	for i := range class.Spec.Workers.MachineDeployments {
		all = append(all, taints{workers.Child("machineDeployments").Index(i).Child("taints"), class.Spec.Workers.MachineDeployments[i].Taints})
	}
	for i := range class.Spec.Workers.MachinePools {
		all = append(all, taints{workers.Child("machinePools").Index(i).Child("taints"), class.Spec.Workers.MachinePools[i].Taints})
	}
	return all
}
