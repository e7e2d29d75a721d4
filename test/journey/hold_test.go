package journey

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// Annotations hold back the upgrade of a MachineDeployment, or of one and all that follow it.
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
	c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(4), Version(older), c.Agrees)

	still := c.Always("what is held back stays", ControlPlaneFirst(newer), olderOnly("md-0", "md-2", "md-3"))
	c.Change(setVersion(newer))
	c.Eventually("the others are upgraded", ControlPlanes(1), Workers(4), ofVersions(older, newer, older, older),
		reconciled(clusterv1.TopologyReconciledMachineDeploymentsUpgradeDeferredReason))
	still()

	still = c.Always("what is deferred stays", olderOnly("md-0"))
	c.Change(withoutAnnotations(2))
	c.Eventually("the sequence goes on", Workers(4), ofVersions(older, newer, newer, newer))
	still()

	c.Change(withoutAnnotations(0))
	c.Eventually("what was deferred follows", Ready, ControlPlanes(1), Workers(4), Version(newer), reconciled(""), c.Agrees)
	c.Gone()
}

func withoutAnnotations(deployment int) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) {
		c.Spec.Topology.Workers.MachineDeployments[deployment].Metadata.Annotations = nil
	}
}

// olderOnly is true while all Machines of these MachineDeployments are of the older version.
func olderOnly(names ...string) Condition {
	return func(p *Picture) error {
		for _, m := range p.Workers() {
			for _, name := range names {
				if m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] == name && !ofVersion(older)(&m) {
					return fmt.Errorf("Machine %s of %s is of version %s", m.Name, name, *m.Spec.Version)
				}
			}
		}
		return nil
	}
}

// ofVersions is true when the MachineDeployments md-0, md-1 and so on are of these versions, each with all its Machines.
func ofVersions(versions ...string) Condition {
	want := map[string]string{}
	for i, v := range versions {
		want[fmt.Sprint("md-", i)] = v
	}
	return func(p *Picture) error {
		have := map[string]string{}
		for _, m := range p.Workers() {
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

// reconciled is true when the topology is, or, with a reason, when it is not for that reason.
func reconciled(reason string) Condition {
	return func(p *Picture) error {
		now := condition.Get(p.Cluster, clusterv1.TopologyReconciledCondition)
		if now == nil || now.Reason != reason || condition.IsTrue(p.Cluster, now.Type) != (reason == "") {
			return fmt.Errorf("TopologyReconciled is %+v, want reason %q", now, reason)
		}
		return nil
	}
}

// A MachineDeployment that shrinks loses the Machine that its policy names, unless a person has marked another one.
func TestWhichMachinesGoFirst(t *testing.T) {
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
			c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(1), c.Agrees)
			first := c.Picture().Workers()[0]
			// What is made within the same second is of the same age.
			c.Eventually("the next one is younger", func(*Picture) error {
				if age := time.Since(first.CreationTimestamp.Time); age < 2*time.Second {
					return fmt.Errorf("the first Machine is %s old", age)
				}
				return nil
			})
			c.Change(setWorkers(2))
			c.Eventually("it grows", Ready, Workers(2), c.Agrees)
			byAge := c.Picture().Workers()
			if byAge[0].UID != first.UID {
				byAge[0], byAge[1] = byAge[1], byAge[0]
			}
			if tc.mark >= 0 {
				m := byAge[tc.mark].DeepCopy()
				c.update(m, func() { annotated(clusterv1.DeleteMachineAnnotation)(m) })
			}
			c.Change(setWorkers(1))
			c.Eventually("it shrinks", Ready, Workers(1), c.Agrees)
			if left := c.Picture().Workers()[0]; left.UID != byAge[1-tc.gone].UID {
				t.Errorf("Machine %s is left, want %s", left.Name, byAge[1-tc.gone].Name)
			}
			c.Gone()
		})
	}
}
