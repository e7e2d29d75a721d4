package topology

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestPinned is an upgrade of a Cluster with workers that have a version of their own, and what follows when that is raised and removed.
func TestPinned(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	c.Spec.Topology.Workers.MachineDeployments = append(c.Spec.Topology.Workers.MachineDeployments,
		clusterv1.MachineDeploymentTopology{Class: "worker", Name: "md-1", Version: "v1.30.0"})
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	old0, old1 := w.machine(c, "md-0", "v1.30.0"), w.machine(c, "md-1", "v1.30.0")
	w.created(old0)
	w.created(old1)
	pinned := func(version string) func(*clusterv1.Cluster) {
		return func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachineDeployments[1].Version = version }
	}
	const old, next, last = "v1.30.0", "v1.31.0", "v1.32.0"
	const pending = clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason
	steps := []struct {
		reason string
		event  func()
		want   []any
	}{
		{"the control plane is upgraded first", func() {
			changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = next })
		}, []any{next, old, old, pending}},
		{"then the other workers", func() { w.provisioned(c) }, []any{next, next, old, ""}},
		{"and the upgrade is complete", func() { w.created(w.machine(c, "md-0", next)); w.removed(old0) }, []any{next, next, old, ""}},
		{"the pinned workers can be changed meanwhile", func() {
			changed(w, c, func(c *clusterv1.Cluster) {
				replicas := int32(7)
				c.Spec.Topology.Workers.MachineDeployments[1].Replicas = &replicas
			})
		}, []any{next, next, old, ""}},
		{"a higher version waits for the control plane", func() {
			changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = last })
			changed(w, c, pinned(next))
		}, []any{last, next, old, pending}},
		{"other workers come first", func() { w.provisioned(c) }, []any{last, last, old, pending}},
		{"then it is given", func() { w.removed(w.machine(c, "md-0", next)) }, []any{last, last, next, ""}},
		{"without it, the workers follow", func() { w.removed(old1); changed(w, c, pinned("")) }, []any{last, last, last, ""}},
	}
	for _, step := range steps {
		step.event()
		w.reconciled(c)
		w.expect(step.reason, step.want, w.versions(c))
		w.expectSteady(c, step.reason)
	}
	w.expect("replicas of the pinned workers", any(int64(7)), fieldOf(w.one("MachineDeployment", "c-md-1", c), "spec.replicas"))
}
