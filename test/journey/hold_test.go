package journey

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// TestUpgradesAreHeldBack checks the annotations that defer the upgrade of a MachineDeployment, or hold it and all that follow.
func TestUpgradesAreHeldBack(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	cluster := NewCluster("held", w.Class(w.Tools.ProjectTemplate())).Build()
	annotations := []map[string]string{
		{clusterv1.ClusterTopologyDeferUpgradeAnnotation: ""}, nil, {clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation: ""}, nil,
	}
	deployments := make([]clusterv1.MachineDeploymentTopology, len(annotations))
	for i := range deployments {
		deployments[i] = clusterv1.MachineDeploymentTopology{
			Class: "default-worker", Name: fmt.Sprint("md-", i), Replicas: ptr.To[int32](1), Metadata: clusterv1.ObjectMeta{Annotations: annotations[i]},
		}
	}
	cluster.Spec.Topology.Workers.MachineDeployments = deployments
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(4), Version(older), c.WorkloadMatches)

	still := c.Always("MachineDeployments on hold are not upgraded", ControlPlaneFirst(newer), olderOnly("md-0", "md-2", "md-3"))
	c.Change(SetVersion(newer))
	c.Eventually("the others are upgraded", ControlPlanes(1), Workers(4), ofVersions(older, newer, older, older),
		reconciled(clusterv1.TopologyReconciledMachineDeploymentsUpgradeDeferredReason))
	c.Eventually("the hold is explained", c.Explains("UpgradeHeld Cluster", "md-2"))
	still()

	still = c.Always("the deferred MachineDeployment is not upgraded", olderOnly("md-0"))
	c.Change(withoutAnnotations(2))
	c.Eventually("the sequence continues", Workers(4), ofVersions(older, newer, newer, newer))
	c.Eventually("the deferred upgrade is explained", c.Explains("UpgradeDeferred Cluster", "md-0"))
	still()

	c.Change(withoutAnnotations(0))
	c.Eventually("the deferred MachineDeployment is upgraded", Ready, ControlPlanes(1), Workers(4), Version(newer), reconciled(""), c.WorkloadMatches)
	c.Gone()
}

func withoutAnnotations(deployment int) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) {
		c.Spec.Topology.Workers.MachineDeployments[deployment].Metadata.Annotations = nil
	}
}

// olderOnly is true while all Machines of these MachineDeployments have the older version.
func olderOnly(names ...string) Condition {
	return func(p *Snapshot) error {
		for _, m := range p.Workers() {
			for _, name := range names {
				if m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] == name && !ofVersion(older)(&m) {
					return fmt.Errorf("Machine %s of %s has version %s", m.Name, name, *m.Spec.Version)
				}
			}
		}
		return nil
	}
}

// ofVersions is true when all Machines of the MachineDeployments md-0, md-1 and so on have these versions.
func ofVersions(versions ...string) Condition {
	want := map[string]string{}
	for i, v := range versions {
		want[fmt.Sprint("md-", i)] = v
	}
	return func(p *Snapshot) error {
		have := map[string]string{}
		for _, m := range p.Deployed() {
			name := m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
			if have[name] != "" && have[name] != *m.Spec.Version {
				return fmt.Errorf("%s has Machines of two versions", name)
			}
			have[name] = *m.Spec.Version
		}
		if diff := cmp.Diff(want, have); diff != "" {
			return fmt.Errorf("versions (-want +got):\n%s", diff)
		}
		return nil
	}
}

// reconciled is true when TopologyReconciled is True, or, with a reason, when it is False with that reason.
func reconciled(reason string) Condition {
	return func(p *Snapshot) error {
		now := FindCondition(p.Cluster, clusterv1.TopologyReconciledCondition)
		if now == nil || now.Reason != reason || ConditionIsTrue(p.Cluster, now.Type) != (reason == "") {
			return fmt.Errorf("TopologyReconciled is %+v, want reason %q", now, reason)
		}
		return nil
	}
}

// TestDeletePolicy checks which Machine is deleted when a MachineDeployment is scaled down: the one that the policy selects,
// or one with the annotation.
func TestDeletePolicy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, policy string
		mark           int // the index, by age, of the Machine that is marked; -1 for none
		gone           int
	}{
		{"the oldest", "Oldest", -1, 0},
		{"the newest", "Newest", -1, 1},
		{"the marked one rather than the oldest", "Oldest", 1, 1},
		{"the marked one rather than the newest", "Newest", 0, 0},
		{"the marked one rather than any", "Random", 1, 1},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			w := shared.World(t)
			cluster := NewCluster("first", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build()
			cluster.Spec.Topology.Workers.MachineDeployments[0].Strategy = &clusterv1.MachineDeploymentStrategy{
				Type: clusterv1.RollingUpdateMachineDeploymentStrategyType, RollingUpdate: &clusterv1.MachineRollingUpdateDeployment{DeletePolicy: &tc.policy},
			}
			c := w.Subject(cluster)
			c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
			first := c.Snapshot().Workers()[0]
			// Machines that are created in the same second have the same age.
			c.Eventually("the next Machine is younger", func(*Snapshot) error {
				if age := time.Since(first.CreationTimestamp.Time); age < 2*time.Second {
					return fmt.Errorf("the first Machine is %s old", age)
				}
				return nil
			})
			c.Change(SetWorkers(2))
			c.Eventually("the MachineDeployment is scaled up", Ready, Workers(2), c.WorkloadMatches)
			byAge := c.Snapshot().Workers()
			if byAge[0].UID != first.UID {
				byAge[0], byAge[1] = byAge[1], byAge[0]
			}
			if tc.mark >= 0 {
				m := byAge[tc.mark].DeepCopy()
				c.update(m, func() { annotated(clusterv1.DeleteMachineAnnotation)(m) })
			}
			c.Change(SetWorkers(1))
			c.Eventually("the MachineDeployment is scaled down", Ready, Workers(1), c.WorkloadMatches)
			if left := c.Snapshot().Workers()[0]; left.UID != byAge[1-tc.gone].UID {
				t.Errorf("Machine %s is left, want %s", left.Name, byAge[1-tc.gone].Name)
			}
			c.Gone()
		})
	}
}
