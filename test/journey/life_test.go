package journey

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// TestClusterIsCreatedAndDeleted generates a Cluster from a template, uses its kubeconfig, and deletes it.
func TestClusterIsCreatedAndDeleted(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		w.Class(template)
		c := w.Subject(w.Generated(template, "demo", older, 1, 2))
		healthy := c.NeverBlocked()
		c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), Version(older), c.WorkloadMatches, c.ExplainsNothing)
		checkKubeconfig(t, c)
		c.Gone()
		healthy()
	})
}

// checkKubeconfig checks that kubectl lists the Nodes with the kubeconfig from clusterctl.
func checkKubeconfig(t *testing.T, c *Subject) {
	t.Helper()
	r := c.Tools.Clusterctl(t.Context(), "", "get", "kubeconfig", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig)
	if r.Failed {
		t.Fatal(r)
	}
	config, err := clientcmd.Load([]byte(r.Out))
	if err != nil {
		t.Fatalf("parsing the kubeconfig from clusterctl: %v", err)
	}
	path := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	r = c.Tools.Kubectl(t.Context(), "", "get", "nodes", "--kubeconfig", path)
	if r.Failed {
		t.Fatal(r)
	}
	for _, m := range c.Snapshot().Machines.Items {
		if !strings.Contains(r.Out, m.Status.NodeRef.Name) {
			t.Errorf("kubectl does not list the Node of Machine %s:\n%s", m.Name, r.Out)
		}
	}
}

// TestClusterScales scales workers and control plane up and down. Machines that are kept stay available.
func TestClusterScales(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		w.Class(template)
		c := w.Subject(w.Generated(template, "scale", older, 1, 1))
		healthy := c.NeverBlocked()
		c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
		small := c.Snapshot()

		still := c.Always("Machines stay available while the Cluster is scaled up", AvailableControlPlane(1), AvailableWorkers(1), AtMost(3, 3))
		consistent := c.EtcdIsConsistent(1, 3)
		c.Change(SetWorkers(3))
		c.Change(SetControlPlanes(3))
		c.Eventually("both are scaled up", Ready, ControlPlanes(3), Workers(3), c.WorkloadMatches)
		still()

		still = c.Always("Machines stay available while the Cluster is scaled down", AvailableControlPlane(1), AvailableWorkers(1), AtMost(3, 3))
		c.Change(func(cluster *clusterv1.Cluster) {
			SetWorkers(1)(cluster)
			SetControlPlanes(1)(cluster)
		})
		c.Eventually("both are scaled down", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
		still()
		consistent()
		healthy()
		if err := SameMachines((*Snapshot).ControlPlane, small)(c.Snapshot()); err == nil {
			t.Error("the oldest control plane Machine still exists, but must be deleted first")
		}
		c.Gone()
	})
}

// TestClusterIsUpgraded checks that an upgrade by a minor version replaces the control plane first, then the workers, as their
// strategies require.
func TestClusterIsUpgraded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason                 string
		controlPlanes, workers int
	}{
		{"a replacement joins before a single control plane Machine is deleted", 1, 1},
		{"a control plane of three stays available", 3, 3},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			forEachTemplate(t, func(t *testing.T, w *World, template Template) {
				w.Class(template)
				c := w.Subject(w.Generated(template, "upgrade", older, tc.controlPlanes, tc.workers))
				upgrade(c, tc.controlPlanes, tc.workers)
				c.Gone()
			})
		})
	}
}

func upgrade(c *Subject, controlPlanes, workers int) {
	c.t.Helper()
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(controlPlanes), Workers(workers), Version(older), c.WorkloadMatches)
	before := c.Snapshot()
	still := c.Always("an upgrade follows the strategies", ControlPlaneFirst(newer), AvailableControlPlane(controlPlanes),
		AvailableWorkers(workers), AtMost(controlPlanes+1, workers+1))
	consistent := c.EtcdIsConsistent(controlPlanes, controlPlanes+1)
	healthy := c.NeverBlocked()
	c.Change(SetVersion(newer))
	c.Waits(Ready, ControlPlanes(controlPlanes), Workers(workers), Version(newer), NewMachines((*Snapshot).ControlPlane, before),
		NewMachines((*Snapshot).Workers, before))
	c.Eventually("every Machine is replaced by one with the new version", Ready, ControlPlanes(controlPlanes), Workers(workers), Version(newer),
		NewMachines((*Snapshot).ControlPlane, before), NewMachines((*Snapshot).Workers, before), c.WorkloadMatches, c.ExplainsNothing)
	still()
	consistent()
	healthy()
}
