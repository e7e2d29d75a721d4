package journey

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	older = "v1.30.5"
	newer = "v1.31.2"
)

// A user generates a Cluster of a template, gets a kubeconfig for it, and deletes it.
func TestComesUpAndGoes(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		w.Class(template)
		c := w.Subject(w.Generated(template, "demo", older, 1, 2))
		c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(2), Version(older), c.Agrees)
		usersKubeconfig(t, c)
		c.Gone()
	})
}

// usersKubeconfig checks that clusterctl hands out a kubeconfig by which kubectl sees the Nodes.
func usersKubeconfig(t *testing.T, c *Subject) {
	t.Helper()
	r := c.Tools.Clusterctl(t.Context(), "", "get", "kubeconfig", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig)
	if r.Failed {
		t.Fatal(r)
	}
	config, err := clientcmd.Load([]byte(r.Out))
	if err != nil {
		t.Fatalf("what clusterctl handed out is no kubeconfig: %v", err)
	}
	path := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	r = c.Tools.Kubectl(t.Context(), "", "get", "nodes", "--kubeconfig", path)
	if r.Failed {
		t.Fatal(r)
	}
	for _, m := range c.Picture().Machines.Items {
		if !strings.Contains(r.Out, m.Status.NodeRef.Name) {
			t.Errorf("kubectl does not show the Node of Machine %s:\n%s", m.Name, r.Out)
		}
	}
}

// Workers and control plane grow and shrink; nothing that stays is disturbed.
func TestScales(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		w.Class(template)
		c := w.Subject(w.Generated(template, "scale", older, 1, 1))
		c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(1), c.Agrees)
		small := c.Picture()

		still := c.Always("growing disturbs nobody", AvailableControlPlane(1), AvailableWorkers(1), AtMost(3, 3))
		consistent := c.EtcdIsConsistent(1, 3)
		c.Change(setWorkers(3))
		c.Change(setControlPlanes(3))
		c.Eventually("both grow", Ready, ControlPlanes(3), Workers(3), c.Agrees)
		still()

		still = c.Always("shrinking leaves what was asked for", AvailableControlPlane(1), AvailableWorkers(1), AtMost(3, 3))
		c.Change(func(cluster *clusterv1.Cluster) {
			setWorkers(1)(cluster)
			setControlPlanes(1)(cluster)
		})
		c.Eventually("both shrink", Ready, ControlPlanes(1), Workers(1), c.Agrees)
		still()
		consistent()
		if err := SameMachines((*Picture).ControlPlane, small)(c.Picture()); err == nil {
			t.Error("the oldest control plane Machine goes first, and it is still there")
		}
		c.Gone()
	})
}

// An upgrade by a minor version replaces the control plane first, then the workers, and there is never less than the
// MachineDeployment's and the control plane's strategies promise.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason                 string
		controlPlanes, workers int
	}{
		{"a single control plane Machine is joined by its successor before it goes", 1, 1},
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
	c.Eventually("it comes up", Ready, ControlPlanes(controlPlanes), Workers(workers), Version(older), c.Agrees)
	before := c.Picture()
	still := c.Always("an upgrade keeps the promises", ControlPlaneFirst(newer), AvailableControlPlane(controlPlanes),
		AvailableWorkers(workers), AtMost(controlPlanes+1, workers+1))
	consistent := c.EtcdIsConsistent(controlPlanes, controlPlanes+1)
	c.Change(setVersion(newer))
	c.Eventually("every Machine is replaced by one of the new version", Ready, ControlPlanes(controlPlanes), Workers(workers), Version(newer),
		NewMachines((*Picture).ControlPlane, before), NewMachines((*Picture).Workers, before), c.Agrees)
	still()
	consistent()
}
