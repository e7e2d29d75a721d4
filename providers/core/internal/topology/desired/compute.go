package desired

import (
	"context"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
)

// Compute returns the desired objects of a Cluster. Existing templates keep their names even if their content changes: call
// Rotate next.
func Compute(ctx context.Context, in Input) (*Objects, error) {
	c := computation{Input: in, objects: &Objects{ControlPlaneOnHold: in.Versions.ControlPlaneOnHold}}
	c.patch.Cluster, c.patch.Class, c.patch.Sources = in.Cluster, in.Blueprint.Class, in.Sources
	if err := c.infrastructureAndControlPlane(); err != nil {
		return nil, err
	}
	workers := &in.Cluster.Spec.Topology.Workers
	if err := c.machineDeployments(workers.MachineDeployments); err != nil {
		return nil, err
	}
	if err := c.machinePools(workers.MachinePools); err != nil {
		return nil, err
	}
	if err := in.Blueprint.Engine.Apply(ctx, &c.patch); err != nil {
		return nil, err
	}
	for _, w := range c.objects.Workers {
		if w.Pool == nil {
			continue
		}
		if err := w.setRevisions(); err != nil {
			return nil, err
		}
	}
	return c.objects, nil
}

type computation struct {
	Input
	objects *Objects
	patch   patches.Input
}

// infrastructureAndControlPlane computes the objects that do not belong to workers.
func (c *computation) infrastructureAndControlPlane() error {
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
	o.Contract = c.Current.Contract
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
		class := machineDeploymentClass(c.Blueprint.Class, topology.Class)
		if class == nil {
			return missingClass(MachineDeploymentKind, topology.Class, topology.Name, c.Blueprint.Class)
		}
		n := names.Workers{
			Kind: MachineDeploymentKind, Topology: topology.Name, Strategy: names.MachineDeploymentStrategy, Template: class.Naming.Template,
		}
		existing := c.currentName(MachineDeploymentKind, topology.Name)
		name, version, err := c.nameAndVersion(n, existing, c.Versions.MachineDeployments, &c.objects.DeploymentsWaiting)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		md := machineDeployment(c.Input, topology, class, name, version)
		md.OnHold = slices.Contains(c.Versions.MachineDeployments.Pending, name)
		c.objects.Workers = append(c.objects.Workers, md)
		templates := c.Blueprint.Workers[WorkersID{MachineDeploymentKind, class.Class}]
		c.patch.MachineDeployments = append(c.patch.MachineDeployments, deploymentPatches(topology, md, templates))
	}
	return nil
}

func (c *computation) machinePools(topologies []clusterv1.MachinePoolTopology) error {
	for i := range topologies {
		topology := &topologies[i]
		class := machinePoolClass(c.Blueprint.Class, topology.Class)
		if class == nil {
			return missingClass(MachinePoolKind, topology.Class, topology.Name, c.Blueprint.Class)
		}
		n := names.Workers{
			Kind: MachinePoolKind, Topology: topology.Name, Strategy: names.MachinePoolStrategy, Template: class.Naming.Template,
		}
		existing := c.currentName(MachinePoolKind, topology.Name)
		name, version, err := c.nameAndVersion(n, existing, c.Versions.MachinePools, &c.objects.PoolsWaiting)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		mp, err := machinePool(c.Input, topology, class, name, version)
		if err != nil {
			return err
		}
		mp.OnHold = slices.Contains(c.Versions.MachinePools.Pending, name)
		c.objects.Workers = append(c.objects.Workers, mp)
		templates := c.Blueprint.Workers[WorkersID{MachinePoolKind, class.Class}]
		c.patch.MachinePools = append(c.patch.MachinePools, poolPatches(topology, mp, templates))
	}
	return nil
}

// currentName returns the object name of workers by their topology name, "" if the object does not exist.
func (c *computation) currentName(kind, topology string) string {
	if w, ok := c.Current.Workers[WorkersID{kind, topology}]; ok {
		return w.Object().GetName()
	}
	return ""
}

// nameAndVersion returns the object name of workers, current or new, and the version that they get now. The name is empty if
// they cannot be created yet: the upgrade plan has no version for them, or a terminating object has their name. In the latter
// case, they are added to waiting.
func (c *computation) nameAndVersion(
	n names.Workers, existing string, planned upgrade.Sequence, waiting *[]string,
) (name, version string, err error) {
	version, ok := planned.Versions[n.Topology]
	switch {
	case !ok:
		return "", "", nil
	case existing != "":
		return existing, version, nil
	}
	name, free, err := n.Name(c.Cluster, c.Current.Terminating.Has)
	if err == nil && !free {
		*waiting = append(*waiting, n.Topology)
	}
	return name, version, err
}

// machineDeploymentClass returns the class of MachineDeployments with this name, nil if there is none.
func machineDeploymentClass(class *clusterv1.ClusterClass, name string) *clusterv1.MachineDeploymentClass {
	for i := range class.Spec.Workers.MachineDeployments {
		if class.Spec.Workers.MachineDeployments[i].Class == name {
			return &class.Spec.Workers.MachineDeployments[i]
		}
	}
	return nil
}

// machinePoolClass returns the class of MachinePools with this name, nil if there is none.
func machinePoolClass(class *clusterv1.ClusterClass, name string) *clusterv1.MachinePoolClass {
	for i := range class.Spec.Workers.MachinePools {
		if class.Spec.Workers.MachinePools[i].Class == name {
			return &class.Spec.Workers.MachinePools[i]
		}
	}
	return nil
}
