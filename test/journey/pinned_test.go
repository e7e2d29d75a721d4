package journey

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// ofGroup returns the Machines of a MachineDeployment of the topology.
func ofGroup(name string) func(*Snapshot) []clusterv1.Machine {
	return func(p *Snapshot) []clusterv1.Machine {
		return slices.DeleteFunc(p.Workers(), func(m clusterv1.Machine) bool {
			return m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] != name
		})
	}
}

// setPinned changes the second MachineDeployment of the topology: its version and number of Machines.
func setPinned(version string, replicas int32) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) {
		md := &c.Spec.Topology.Workers.MachineDeployments[1]
		md.Version, md.Replicas = version, ptr.To(replicas)
	}
}

// setPinnedPool changes the version of the MachinePool of the topology.
func setPinnedPool(version string) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachinePools[0].Version = version }
}

// pooledAt is true when the MachinePool has a number of Machines, all of a version.
func pooledAt(version string, n int) Condition {
	return func(p *Snapshot) error {
		if err := Pools(n)(p); err != nil {
			return err
		}
		for _, m := range p.Pooled() {
			if ptr.Deref(m.Spec.Version, "") != version {
				return fmt.Errorf("Machine %s has version %s, want %s", m.Name, ptr.Deref(m.Spec.Version, ""), version)
			}
		}
		return nil
	}
}

// TestPinnedWorkers: a group of workers with a version of its own stays below the control plane during an upgrade by several minor versions,
// can be scaled there, and holds an upgrade for which it would be too old. It is upgraded when its version is raised, and follows the
// topology when that is removed. The same goes for a MachinePool.
func TestPinnedWorkers(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	objects, err := readObjects(w.Tools.ProjectTemplate().Class)
	testenv.Must(t, err)
	class := ""
	for _, o := range objects {
		if o.GetKind() == "ClusterClass" {
			class = o.GetName()
			testenv.Must(t, unstructured.SetNestedStringSlice(o.Object, []string{older, newer, "v1.32.4", "v1.33.1", "v1.34.0"}, "spec", "kubernetesVersions"))
		}
		w.Applied(o)
	}
	cluster := NewCluster("c", class).ControlPlanes(1).Workers(1).Version(older).Build()
	workers := cluster.Spec.Topology.Workers
	workers.MachineDeployments = append(workers.MachineDeployments, clusterv1.MachineDeploymentTopology{Class: "default-worker", Name: "md-1"})
	setPinned(older, 1)(cluster)
	setPools(poolTopology("mp-0", 1, nil))(cluster)
	setPinnedPool(older)(cluster)
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), pooledAt(older, 1), Version(older))

	pinned := c.Snapshot()
	still := c.Always("no pinned Machine is replaced", SameMachines(ofGroup("md-1"), pinned), SameMachines((*Snapshot).Pooled, pinned))
	c.Change(SetVersion("v1.33.1"))
	c.Eventually("the upgrade is complete", Ready, ControlPlanes(1), Workers(2), ofVersions("v1.33.1", older), pooledAt(older, 1))
	still()
	if err := c.Try(SetVersion("v1.34.0")); err == nil || !strings.Contains(err.Error(), "MachineDeployment md-1 is pinned to "+older) {
		t.Errorf("an upgrade to a version that the workers are too old for: %v", err)
	}
	c.Change(setPinned(older, 2))
	c.Eventually("the pinned workers are scaled", Ready, Workers(3), ofVersions("v1.33.1", older))

	others := c.Snapshot()
	still = c.Always("no other Machine is replaced", SameMachines((*Snapshot).ControlPlane, others), SameMachines(ofGroup("md-0"), others))
	c.Change(setPinned("v1.32.4", 2))
	c.Eventually("the pinned workers have their new version", Ready, Workers(3), ofVersions("v1.33.1", "v1.32.4"), pooledAt(older, 1))
	if err := c.Try(SetVersion("v1.34.0")); err == nil || !strings.Contains(err.Error(), "MachinePool mp-0 is pinned to "+older) {
		t.Errorf("an upgrade to a version that the pool is too old for: %v", err)
	}
	c.Change(setPinnedPool("v1.32.4"))
	c.Eventually("the pool has its new version", Ready, Workers(3), ofVersions("v1.33.1", "v1.32.4"), pooledAt("v1.32.4", 1))
	c.Change(setPinnedPool(""))
	c.Eventually("the pool follows the Cluster", Ready, Workers(3), ofVersions("v1.33.1", "v1.32.4"), pooledAt("v1.33.1", 1))
	c.Change(setPinned("", 2))
	c.Eventually("they follow the Cluster", Ready, Workers(3), Version("v1.33.1"), c.WorkloadMatches)
	still()
	c.Gone()
}
