package desired

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/core/internal/topology/patches"
)

// Compute is the objects that the Cluster is to have now. Templates have the names of those there are, whatever their
// content: Rotate comes next.
func Compute(ctx context.Context, in Input) (*Objects, error) {
	c := computation{Input: in, objects: &Objects{}}
	c.patch.Cluster, c.patch.Class = in.Cluster, in.Blueprint.Class
	if err := c.clusterWide(); err != nil {
		return nil, err
	}
	if workers := in.Cluster.Spec.Topology.Workers; workers != nil {
		if err := c.machineDeployments(workers.MachineDeployments); err != nil {
			return nil, err
		}
		if err := c.machinePools(workers.MachinePools); err != nil {
			return nil, err
		}
	}
	return c.objects, in.Blueprint.Engine.Apply(ctx, &c.patch)
}

type computation struct {
	Input
	objects *Objects
	patch   patches.Input
}

// clusterWide makes what there is one of: the infrastructure cluster and the control plane.
func (c *computation) clusterWide() error {
	name, err := names.ControlPlane(c.Cluster, c.Blueprint.Class)
	if err != nil {
		return err
	}
	o := c.objects
	if o.InfrastructureCluster, err = infrastructureCluster(c.Input); err != nil {
		return err
	}
	if c.Blueprint.ControlPlaneMachines != nil {
		if o.ControlPlaneMachines, err = controlPlaneMachines(c.Input, name); err != nil {
			return err
		}
		c.patch.ControlPlane.Machines = &patches.Template{Source: c.Blueprint.ControlPlaneMachines, Target: o.ControlPlaneMachines}
	}
	if o.ControlPlane, err = controlPlane(c.Input, name, o.ControlPlaneMachines); err != nil {
		return err
	}
	o.ControlPlaneHealthCheck = controlPlaneHealthCheck(c.Input, name)
	c.patch.InfrastructureCluster = patches.Template{Source: c.Blueprint.InfrastructureCluster, Target: o.InfrastructureCluster}
	c.patch.ControlPlane.Template = patches.Template{Source: c.Blueprint.ControlPlane, Target: o.ControlPlane}
	return nil
}

func (c *computation) machineDeployments(topologies []clusterv1.MachineDeploymentTopology) error {
	for i := range topologies {
		topology := &topologies[i]
		class := MachineDeploymentClass(c.Blueprint.Class, topology.Class)
		if class == nil {
			return missingClass("MachineDeployment", topology.Class, topology.Name, c.Blueprint.Class)
		}
		version, due := c.Versions.MachineDeployments.Versions[topology.Name]
		if !due {
			continue
		}
		n := names.Workers{Kind: "MachineDeployment", Topology: topology.Name, Strategy: names.MachineDeploymentStrategy}
		if class.NamingStrategy != nil {
			n.Template = class.NamingStrategy.Template
		}
		existing := ""
		if current := c.Current.MachineDeployments[topology.Name]; current != nil {
			existing = current.Name
		}
		name, ok, err := c.nameWorkers(n, existing)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		made := machineDeployment(c.Input, topology, class, name, version)
		c.objects.MachineDeployments = append(c.objects.MachineDeployments, made)
		c.patch.MachineDeployments = append(c.patch.MachineDeployments, made.patchInput(topology, c.Blueprint.MachineDeployments[class.Class]))
	}
	return nil
}

func (c *computation) machinePools(topologies []clusterv1.MachinePoolTopology) error {
	for i := range topologies {
		topology := &topologies[i]
		class := MachinePoolClass(c.Blueprint.Class, topology.Class)
		if class == nil {
			return missingClass("MachinePool", topology.Class, topology.Name, c.Blueprint.Class)
		}
		version, due := c.Versions.MachinePools.Versions[topology.Name]
		if !due {
			continue
		}
		n := names.Workers{Kind: "MachinePool", Topology: topology.Name, Strategy: names.MachinePoolStrategy}
		if class.NamingStrategy != nil {
			n.Template = class.NamingStrategy.Template
		}
		existing := ""
		if current := c.Current.MachinePools[topology.Name]; current != nil {
			existing = current.Name
		}
		name, ok, err := c.nameWorkers(n, existing)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		made, err := machinePool(c.Input, topology, class, name, version)
		if err != nil {
			return err
		}
		c.objects.MachinePools = append(c.objects.MachinePools, made)
		c.patch.MachinePools = append(c.patch.MachinePools, made.patchInput(topology, c.Blueprint.MachinePools[class.Class]))
	}
	return nil
}

// nameWorkers is the name of existing workers, or one for new workers. ok is false if they have to wait for it.
func (c *computation) nameWorkers(n names.Workers, existing string) (name string, ok bool, err error) {
	if existing != "" {
		return existing, true, nil
	}
	name, ok, err = n.Name(c.Cluster, c.Current.Leaving.Has)
	if err == nil && !ok {
		c.objects.Waiting = append(c.objects.Waiting, n.Topology)
	}
	return name, ok, err
}

// MachineDeploymentClass is the class of MachineDeployments with this name, nil if there is none.
func MachineDeploymentClass(class *clusterv1.ClusterClass, name string) *clusterv1.MachineDeploymentClass {
	for i := range class.Spec.Workers.MachineDeployments {
		if class.Spec.Workers.MachineDeployments[i].Class == name {
			return &class.Spec.Workers.MachineDeployments[i]
		}
	}
	return nil
}

// MachinePoolClass is the class of MachinePools with this name, nil if there is none.
func MachinePoolClass(class *clusterv1.ClusterClass, name string) *clusterv1.MachinePoolClass {
	for i := range class.Spec.Workers.MachinePools {
		if class.Spec.Workers.MachinePools[i].Class == name {
			return &class.Spec.Workers.MachinePools[i]
		}
	}
	return nil
}
