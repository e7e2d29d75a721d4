package journey

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// rollout runs `clusterctl alpha rollout` in the namespace of a Cluster.
func (c *Subject) rollout(args ...string) Result {
	c.t.Helper()
	args = append([]string{"alpha", "rollout"}, args...)
	return c.Tools.Clusterctl(c.t.Context(), "", append(args, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig)...)
}

// rolledOut runs a command that must succeed.
func (c *Subject) rolledOut(args ...string) {
	c.t.Helper()
	if r := c.rollout(args...); r.Failed {
		c.t.Fatal(r)
	}
}

// workersVersion changes the version of the MachineDeployment.
func (c *Subject) workersVersion(version string) {
	c.t.Helper()
	d := &clusterv1.MachineDeployment{}
	if err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "workers"}, d); err != nil {
		c.t.Fatal(err)
	}
	before := d.DeepCopy()
	d.Spec.Template.Spec.Version = ptr.To(version)
	if err := c.Client.Patch(c.t.Context(), d, client.MergeFrom(before)); err != nil {
		c.t.Fatal(err)
	}
}

// ofWorkers requires a version of all workers.
func ofWorkers(version string) Condition {
	return func(p *Snapshot) error {
		for _, m := range p.Workers() {
			if ptr.Deref(m.Spec.Version, "") != version {
				return fmt.Errorf("worker %s has version %s, want %s", m.Name, ptr.Deref(m.Spec.Version, ""), version)
			}
		}
		return nil
	}
}

// TestRollout restarts, undoes, pauses and resumes rollouts with clusterctl, of workers and of the control plane.
func TestRollout(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Plain(Plain{ControlPlanes: 1, Workers: 2}.String())
	const workers, plane = "machinedeployment/workers", "kubeadmcontrolplane/c"
	c.Eventually("the Cluster is complete", ControlPlanes(1), Workers(2))

	before := c.Snapshot()
	c.rolledOut("restart", workers)
	c.Eventually("restart replaces the workers, and only them", Workers(2), NewMachines((*Snapshot).Workers, before), SameMachines((*Snapshot).ControlPlane, before))

	c.workersVersion("v1.30.4")
	c.Eventually("the workers get another version", Workers(2), ofWorkers("v1.30.4"))
	c.rolledOut("undo", workers)
	c.Eventually("undo rolls back to the previous revision", Workers(2), ofWorkers("v1.30.5"))
	c.rolledOut("undo", workers, "--to-revision", "3")
	c.Eventually("undo rolls back to a revision", Workers(2), ofWorkers("v1.30.4"))
	if r := c.rollout("undo", workers, "--to-revision", "99"); !r.Failed || !strings.Contains(r.Err, "it has no revision 99: use --to-revision with one of ") {
		t.Errorf("an unknown revision must be rejected with the known ones, got %v", r)
	}

	c.rolledOut("pause", workers, plane)
	before = c.Snapshot()
	still := c.Always("paused resources keep their Machines", SameMachines((*Snapshot).Workers, before), SameMachines((*Snapshot).ControlPlane, before))
	for _, verb := range []string{"pause", "restart"} {
		if r := c.rollout(verb, workers); !r.Failed || !strings.Contains(r.Err, "paused") {
			t.Errorf("%s must reject a paused MachineDeployment, got %v", verb, r)
		}
	}
	c.workersVersion("v1.30.5")
	c.Eventually("both pauses are explained", c.Explains("Paused KubeadmControlPlane/c"), c.ExplainsAll("RolloutPaused MachineDeployment/workers"))
	still()
	c.rolledOut("resume", workers, plane)
	c.Eventually("changes are rolled out afterwards", Workers(2), ofWorkers("v1.30.5"))

	before = c.Snapshot()
	c.rolledOut("restart", plane)
	c.Eventually("restart replaces the control plane", ControlPlanes(1), NewMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before))
}
