package topology

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// TestPartsThatWaitForTheirUpgradeAreNotChanged changes a variable that each template depends on, and the replicas, together with the
// version: each part gets all changes with its version, because it would be rolled out twice otherwise.
func TestPartsThatWaitForTheirUpgradeAreNotChanged(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	old := w.machine(c, "md-0", "v1.30.0")
	w.created(old)
	const before, after, last = "v1.30.0", "v1.31.0", "v1.31.1"
	cpTemplate, mdTemplate := w.one("InMemoryMachineTemplate", "c", c).GetName(), w.one("InMemoryMachineTemplate", "c-md-0", c).GetName()
	type state struct {
		ControlPlane, DrainTimeout any
		Workers, Replicas, Label   any
		// Template reports whether the workers still have their first template, ControlPlaneTemplate whether that of the control plane exists.
		Template, ControlPlaneTemplate bool
	}
	now := func() state {
		cp, md := w.one("KubeadmControlPlane", "c", c), w.one("MachineDeployment", "c-md-0", c)
		return state{
			fieldOf(cp, "spec.version"), fieldOf(cp, "spec.machineTemplate.nodeDrainTimeout"),
			fieldOf(md, "spec.template.spec.version"), fieldOf(md, "spec.replicas"), md.GetLabels()["changed"],
			fieldOf(md, "spec.template.spec.infrastructureRef.name") == mdTemplate, w.one("InMemoryMachineTemplate", "c", c).GetName() == cpTemplate,
		}
	}
	two := int32(2)
	steps := []struct {
		reason string
		event  func()
		want   state
	}{
		{"the control plane is upgraded, the workers wait with all changes", func() {
			changed(w, c, func(c *clusterv1.Cluster) {
				c.Spec.Topology.Version = after
				c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "startup", Value: raw(`"20s"`)}}
				md := &c.Spec.Topology.Workers.MachineDeployments[0]
				md.Replicas, md.Metadata.Labels = &two, map[string]string{"changed": "yes"}
			})
		}, state{after, nil, before, int64(1), "", true, true}},
		{"the control plane waits with all changes, too, while it is being upgraded to another version", func() {
			changed(w, c, func(c *clusterv1.Cluster) {
				c.Spec.Topology.Version = last
				c.Spec.Topology.ControlPlane.Deletion.NodeDrainTimeoutSeconds = new(int32(5))
			})
		}, state{after, nil, before, int64(1), "", true, true}},
		{"it gets them with that version", func() { w.provisioned(c) }, state{last, "5s", before, int64(1), "", true, true}},
		{"and the workers with theirs", func() { w.provisioned(c) }, state{last, "5s", last, int64(2), "yes", false, true}},
	}
	for _, step := range steps {
		step.event()
		w.reconciled(c)
		w.expect(step.reason, step.want, now())
		w.expectSteady(c, step.reason)
	}
	w.removed(old)
	w.reconciled(c)
	if !condition.IsTrue(c, clusterv1.TopologyReconciledV1Beta1Condition) {
		t.Errorf("conditions = %v", c.GetV1Beta1Conditions())
	}
}
