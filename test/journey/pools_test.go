package journey

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	poolInfrastructure = "infrastructure.cluster.x-k8s.io/v1alpha1"
	poolBootstrap      = "bootstrap.cluster.x-k8s.io/v1beta1"
)

// poolObjects returns a MachinePool with its bootstrap config and infrastructure, all of one name.
func (c *Subject) poolObjects(name string, replicas int32) []client.Object {
	bootstrap, infrastructure := object(poolBootstrap, "KubeadmConfig", c.Namespace, name), object(poolInfrastructure, "InMemoryMachinePool", c.Namespace, name)
	for _, o := range []*unstructured.Unstructured{bootstrap, infrastructure} {
		o.SetLabels(map[string]string{clusterv1.ClusterNameLabel: c.Name})
		o.Object["spec"] = map[string]any{}
	}
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.ClusterName, pool.Spec.Replicas = c.Name, &replicas
	pool.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: c.Name, Version: ptr.To(older),
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: &corev1.ObjectReference{APIVersion: poolBootstrap, Kind: bootstrap.GetKind(), Name: name}},
		InfrastructureRef: corev1.ObjectReference{APIVersion: poolInfrastructure, Kind: infrastructure.GetKind(), Name: name},
	}
	return []client.Object{bootstrap, infrastructure, pool}
}

// changePool reads, changes and updates a MachinePool.
func (c *Subject) changePool(name string, change func(*clusterv1.MachinePool)) {
	c.t.Helper()
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	c.update(pool, func() { change(pool) })
}

// TestPoolLives creates, scales, rolls out, remediates and deletes a MachinePool that is not part of a topology.
func TestPoolLives(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("pool", w.Class(w.Tools.ProjectTemplate())).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), c.WorkloadMatches)
	without := c.Inventory()
	c.Applied(c.poolObjects("workers", 2)...)
	c.Eventually("the pool has two Machines", Ready, Pools(2), c.WorkloadMatches, c.ExplainsNothing)
	checkPooledNodes(t, c)
	checkDescribed(t, c, "workers")

	first := c.Snapshot()
	still := c.Always("nothing is replaced while the pool is scaled", AvailablePools(2), AtMost(1, 4))
	c.changePool("workers", func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](4) })
	c.Eventually("it is scaled up", Pools(4), c.WorkloadMatches)
	c.changePool("workers", func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](2) })
	c.Eventually("it is scaled down", Pools(2), c.WorkloadMatches)
	still()
	if err := SameMachines((*Snapshot).Pooled, first)(c.Snapshot()); err != nil {
		t.Errorf("the youngest Machines must go: %v", err)
	}

	still = c.Always("Machines are replaced one at a time", AvailablePools(2), AtMost(1, 3))
	c.changePool("workers", func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.Version = ptr.To("v1.30.6") })
	c.Eventually("a new version replaces both Machines", Pools(2), NewMachines((*Snapshot).Pooled, first), c.WorkloadMatches)
	still()

	before := c.Snapshot()
	still = c.Always("Machines are replaced one at a time", AvailablePools(2), AtMost(1, 3))
	bootstrap := object(poolBootstrap, "KubeadmConfig", c.Namespace, "workers")
	c.update(bootstrap, func() {
		if err := unstructured.SetNestedStringSlice(bootstrap.Object, []string{"echo hello"}, "spec", "preKubeadmCommands"); err != nil {
			t.Error(err)
		}
	})
	c.Eventually("other bootstrap data replaces both Machines", Pools(2), NewMachines((*Snapshot).Pooled, before), c.WorkloadMatches)
	still()

	remediatePooled(t, c)
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "workers"}}
	if err := c.Client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	c.Eventually("nothing of the pool is left", Pools(0), c.WorkloadMatches, func(*Snapshot) error {
		if diff := cmp.Diff(without, c.Inventory()); diff != "" {
			return fmt.Errorf("objects in the namespace (-before +now):\n%s", diff)
		}
		return nil
	})
	c.Gone()
}

// checkPooledNodes checks what controllers set on the Nodes of a pool.
func checkPooledNodes(t *testing.T, c *Subject) {
	t.Helper()
	nodes, err := c.Workload().Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Snapshot().Pooled() {
		i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == m.Name })
		if i < 0 {
			t.Fatalf("Machine %s has no Node", m.Name)
		}
		want := map[string]string{clusterv1.OwnerKindAnnotation: clusterv1.MachinePoolKind, clusterv1.OwnerNameAnnotation: "workers", clusterv1.MachineAnnotation: m.Name}
		for key, value := range want {
			if have := nodes[i].Annotations[key]; have != value {
				t.Errorf("annotation %s of Node %s is %q, want %q", key, m.Name, have, value)
			}
		}
		if slices.ContainsFunc(nodes[i].Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == clusterv1.NodeUninitializedTaint.Key }) {
			t.Errorf("Node %s has taints %v", m.Name, nodes[i].Spec.Taints)
		}
	}
}

// checkDescribed checks that clusterctl describe has a MachinePool with its Machines.
func checkDescribed(t *testing.T, c *Subject, pool string) {
	t.Helper()
	r := c.Tools.Clusterctl(t.Context(), "", "describe", "cluster", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig)
	if r.Failed || !strings.Contains(r.Out, "MachinePool "+c.Namespace+"/"+pool) || !strings.Contains(r.Out, "2 Machines...") {
		t.Errorf("the tree must have the pool and its group of Machines: %s", r)
	}
	r = c.Tools.Clusterctl(t.Context(), "", "describe", "cluster", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig, "--grouping=false", "--echo")
	for _, m := range c.Snapshot().Pooled() {
		if r.Failed || !strings.Contains(r.Out, "─Machine "+c.Namespace+"/"+m.Name) ||
			!strings.Contains(r.Out, "InMemoryMachine "+c.Namespace+"/"+m.Name) || !strings.Contains(r.Out, "InMemoryMachinePool "+c.Namespace+"/"+pool) {
			t.Errorf("the tree must have the pool's objects and its Machines: %s", r)
		}
	}
}

// remediatePooled marks a Machine of a pool for remediation, as a MachineHealthCheck does.
func remediatePooled(t *testing.T, c *Subject) {
	t.Helper()
	before := c.Snapshot()
	marked := before.Pooled()[0]
	still := c.Always("one Machine is replaced", AvailablePools(1), AtMost(1, 2))
	m := marked.DeepCopy()
	mark := FalseCondition(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationReason, "")
	mark.LastTransitionTime = metav1.Now()
	SetCondition(m, mark)
	if err := c.Client.Status().Patch(t.Context(), m, client.MergeFrom(&marked)); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the marked Machine is replaced", Pools(2), c.WorkloadMatches, func(p *Snapshot) error {
		now := identities(p.Pooled())
		if _, exists := now[marked.Name]; exists {
			return fmt.Errorf("Machine %s still exists", marked.Name)
		}
		if other := before.Pooled()[1]; now[other.Name] != string(other.UID) {
			return fmt.Errorf("Machine %s is replaced, too", other.Name)
		}
		return nil
	})
	still()
}

// TestPoolOfAutoscaler lets an autoscaler of the simulated cloud decide on the number of Machines.
func TestPoolOfAutoscaler(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("autoscaled", w.Class(w.Tools.ProjectTemplate())).Build())
	objects := c.poolObjects("workers", 1)
	objects[2].SetAnnotations(map[string]string{clusterv1.ReplicasManagedByAnnotation: "the-cloud"})
	c.Applied(objects...)
	c.Eventually("the pool has the replicas of the MachinePool", Ready, ControlPlanes(1), Pools(1), c.WorkloadMatches)
	for _, replicas := range []int{3, 0, 2} {
		infrastructure := object(poolInfrastructure, "InMemoryMachinePool", c.Namespace, "workers")
		c.update(infrastructure, func() {
			if err := unstructured.SetNestedField(infrastructure.Object, int64(replicas), "spec", "replicas"); err != nil {
				t.Error(err)
			}
		})
		c.Eventually(fmt.Sprintf("the pool and the MachinePool have %d replicas", replicas), Pools(replicas), c.WorkloadMatches, func(p *Snapshot) error {
			if have := p.Pools.Items[0].Spec.Replicas; have == nil || int(*have) != replicas {
				return fmt.Errorf("spec.replicas of the MachinePool is %v", value(have))
			}
			return nil
		})
	}
	c.Gone()
}

// setPools replaces the MachinePools of a topology.
func setPools(pools ...clusterv1.MachinePoolTopology) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachinePools = pools }
}

func poolTopology(name string, replicas int32, annotations map[string]string) clusterv1.MachinePoolTopology {
	return clusterv1.MachinePoolTopology{
		Class: "default-worker", Name: name, Replicas: &replicas,
		Metadata: clusterv1.ObjectMeta{Annotations: annotations, Labels: map[string]string{"pool": name}},
	}
}

// topologyWaits is true when TopologyReconciled is False with a reason, and the message has a text.
func topologyWaits(reason, text string) Condition {
	return func(p *Snapshot) error {
		c := FindCondition(p.Cluster, clusterv1.TopologyReconciledCondition)
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("TopologyReconciled is %+v, want reason %s", c, reason)
		}
		return nil
	}
}

// poolVersion returns the version of the MachinePool of a topology; empty if there is none.
func poolVersion(p *Snapshot, name string) string {
	for _, pool := range p.Pools.Items {
		if pool.Labels[clusterv1.ClusterTopologyMachinePoolNameLabel] == name {
			return ptr.Deref(pool.Spec.Template.Spec.Version, "")
		}
	}
	return ""
}

// TestPoolsOfClass creates a Cluster with MachinePools from the template, adds pools, upgrades them in order, defers an upgrade, and
// removes a pool.
func TestPoolsOfClass(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	template := w.Tools.ProjectTemplate()
	w.Class(template)
	template.Cluster = strings.TrimSuffix(template.Cluster, ".yaml") + "-in-memory-machine-pool.yaml"
	c := w.Subject(w.Generated(template, "pools", older, 1, 1))
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Pools(1), Version(older), c.WorkloadMatches)

	c.Change(setPools(poolTopology("mp-0", 2, nil), poolTopology("mp-1", 1, nil),
		poolTopology("mp-2", 1, map[string]string{clusterv1.ClusterTopologyDeferUpgradeAnnotation: ""})))
	c.Eventually("pools are scaled and added", Ready, Pools(4), c.WorkloadMatches, pooledLabels)

	before := c.Snapshot()
	still := c.Always("the upgrade follows the order", ControlPlaneFirst(newer), AvailablePools(4), inOrder)
	c.Change(SetVersion(newer))
	c.Eventually("the upgrade of the last pool is deferred", topologyWaits(clusterv1.TopologyReconciledMachinePoolsUpgradeDeferredReason, "-mp-2-"),
		ControlPlanes(1), Pools(4), c.WorkloadMatches, versionsOf(newer, newer, older))
	still()
	if diff := cmp.Diff(identities(ofPool(before, "mp-2")), identities(ofPool(c.Snapshot(), "mp-2"))); diff != "" {
		t.Errorf("Machines of the pool whose upgrade is deferred (-before +now):\n%s", diff)
	}
	c.Change(func(cluster *clusterv1.Cluster) {
		cluster.Spec.Topology.Workers.MachinePools[2].Metadata.Annotations = nil
	})
	c.Eventually("the last pool is upgraded", Ready, Pools(4), Version(newer), NewMachines((*Snapshot).Pooled, before), c.WorkloadMatches)

	before = c.Snapshot()
	still = c.Always("a rollout replaces Machines one at a time in each pool", AvailablePools(4), AtMost(2, 7))
	c.Change(setVariable("startupDuration", "250ms"))
	c.Eventually("a variable replaces all Machines", Ready, ControlPlanes(1), Pools(4), NewMachines((*Snapshot).Pooled, before), c.WorkloadMatches)
	still()

	c.Change(setPools(poolTopology("mp-0", 2, nil)))
	c.Eventually("removed pools are deleted with their objects", Ready, Pools(2), c.WorkloadMatches, func(*Snapshot) error {
		for _, entry := range c.Inventory() {
			if strings.Contains(entry, "-mp-1-") || strings.Contains(entry, "-mp-2-") {
				return fmt.Errorf("%s still exists", entry)
			}
		}
		return nil
	})
	c.Gone()
}

// ofPool returns the Machines of a pool of the topology.
func ofPool(p *Snapshot, name string) []clusterv1.Machine {
	return slices.DeleteFunc(p.Pooled(), func(m clusterv1.Machine) bool { return m.Labels["pool"] != name })
}

// pooledLabels is true when the Machines of pools have the labels of the topology.
func pooledLabels(p *Snapshot) error {
	for _, m := range p.Pooled() {
		if !strings.Contains(m.Name, "-"+m.Labels["pool"]+"-") {
			return fmt.Errorf("Machine %s has label pool=%s", m.Name, m.Labels["pool"])
		}
	}
	return nil
}

// versionsOf is true when the MachinePools mp-0, mp-1, ... of the topology have these versions.
func versionsOf(versions ...string) Condition {
	return func(p *Snapshot) error {
		for i, v := range versions {
			if have := poolVersion(p, fmt.Sprintf("mp-%d", i)); have != v {
				return fmt.Errorf("pool mp-%d has version %s", i, have)
			}
		}
		return nil
	}
}

// inOrder is true while the second pool is not upgraded before all Machines of the first one are.
func inOrder(p *Snapshot) error {
	first := ofPool(p, "mp-0")
	staying := func(m *clusterv1.Machine) bool { return m.Status.NodeRef != nil && m.DeletionTimestamp.IsZero() }
	if poolVersion(p, "mp-1") == newer && count(first, staying) != count(first, func(m *clusterv1.Machine) bool { return staying(m) && ofVersion(newer)(m) }) {
		return errors.New("pool mp-1 is upgraded although pool mp-0 has Machines of the old version")
	}
	return nil
}
