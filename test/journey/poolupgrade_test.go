package journey

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// versionedPatches returns patches of a class that make the bootstrap data and the infrastructure of MachinePools depend on their
// version, as images and scripts often do.
func versionedPatches() []any {
	definition := func(group, kind, path, template string) any {
		return map[string]any{
			"selector": map[string]any{
				"apiVersion": group, "kind": kind,
				"matchResources": map[string]any{"machinePoolClass": map[string]any{"names": []any{"*"}}},
			},
			"jsonPatches": []any{map[string]any{"op": "add", "path": path, "valueFrom": map[string]any{"template": template}}},
		}
	}
	return []any{map[string]any{"name": "version", "definitions": []any{
		definition("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate", "/spec/template/spec/preKubeadmCommands", "[echo {{ .builtin.machinePool.version }}]"),
		definition(poolInfrastructure, "InMemoryMachinePoolTemplate", "/spec/template/spec/template/behaviour/vm/provisioning",
			`{startupDuration: {{ if eq .builtin.machinePool.version "`+older+`" }}100ms{{ else }}200ms{{ end }}}`),
	}}}
}

// versionedClass applies the class of the project with versionedPatches, and returns its name.
func (w *World) versionedClass() string {
	w.t.Helper()
	objects, err := readObjects(w.Tools.ProjectTemplate().Class)
	if err != nil {
		w.t.Fatal(err)
	}
	name := ""
	for _, o := range objects {
		if o.GetKind() == "ClusterClass" {
			name = o.GetName()
			patches, _, _ := unstructured.NestedSlice(o.Object, "spec", "patches")
			if err := unstructured.SetNestedSlice(o.Object, append(patches, versionedPatches()...), "spec", "patches"); err != nil {
				w.t.Fatal(err)
			}
		}
		w.Applied(o)
	}
	return name
}

// inTotal is true while at most n Machines, which may be deleted by now, have been seen.
func inTotal(which func(*Snapshot) []clusterv1.Machine, n int) Condition {
	seen := map[types.UID]string{}
	return func(p *Snapshot) error {
		for _, m := range which(p) {
			seen[m.UID] = m.Name
		}
		if len(seen) > n {
			return fmt.Errorf("%d Machines, want at most %d: %v", len(seen), n, seen)
		}
		return nil
	}
}

// TestPoolOfVersionedClass upgrades a MachinePool whose bootstrap data and infrastructure depend on the version: three objects change,
// but each Machine is replaced once.
func TestPoolOfVersionedClass(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	cluster := NewCluster("versioned", w.versionedClass()).Build()
	setPools(poolTopology("mp-0", 3, nil))(cluster)
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Pools(3), c.WorkloadMatches)

	before := c.Snapshot()
	still := c.Always("each Machine is replaced once", inTotal((*Snapshot).Pooled, 6), AvailablePools(3), AtMost(2, 4))
	c.Change(SetVersion(newer))
	c.Eventually("the pool is upgraded", Ready, ControlPlanes(1), Pools(3), Version(newer), NewMachines((*Snapshot).Pooled, before), c.WorkloadMatches)
	still()

	before = c.Snapshot()
	still = c.Always("each Machine is replaced once", inTotal((*Snapshot).Pooled, 6), AvailablePools(3), AtMost(2, 4))
	c.Change(setVariable("startupDuration", "250ms"))
	c.Eventually("a variable of the infrastructure replaces all Machines", Ready, ControlPlanes(1), Pools(3), NewMachines((*Snapshot).Pooled, before), c.WorkloadMatches)
	still()
	c.Gone()
}

// TestPoolUpgradeWithoutWorkloadCluster lets the workload cluster stop responding in the middle of a pool's upgrade: no Machine is
// replaced meanwhile, and the upgrade continues afterwards.
func TestPoolUpgradeWithoutWorkloadCluster(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	cluster := NewCluster("interrupted", w.Class(w.Tools.ProjectTemplate())).Build()
	setPools(poolTopology("mp-0", 3, nil), poolTopology("mp-1", 1, nil))(cluster)
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Pools(4), c.WorkloadMatches)

	before := c.Snapshot()
	whole := c.Always("each Machine is replaced once", inTotal((*Snapshot).Pooled, 8), AtMost(2, 6))
	c.Change(SetVersion(newer))
	c.Eventually("the first pool is being upgraded", func(p *Snapshot) error {
		if n := count(ofPool(p, "mp-0"), ofVersion(newer)); n == 0 {
			return fmt.Errorf("no Machine has version %s", newer)
		}
		return nil
	})
	c.faults(`{"unresponsive": true}`)
	c.Eventually("the topology says why it does not continue", topologyWaits(clusterv1.TopologyReconciledMachinePoolsUpgradePendingReason, "the workload cluster is unreachable"),
		c.Explains("WorkloadClusterUnreachable Cluster"))
	during := c.Snapshot()
	still := c.Always("nothing is replaced", func(p *Snapshot) error {
		for _, m := range during.Pooled() {
			if _, exists := identities(p.Pooled())[m.Name]; !exists && m.DeletionTimestamp.IsZero() {
				return fmt.Errorf("Machine %s is deleted", m.Name)
			}
		}
		return nil
	})
	if have := poolVersion(during, "mp-1"); have != older {
		t.Errorf("the second pool has version %s, although the first is not upgraded", have)
	}
	still()
	c.faults("")
	c.Eventually("the upgrade ends", Ready, ControlPlanes(1), Pools(4), Version(newer), NewMachines((*Snapshot).Pooled, before), c.WorkloadMatches)
	whole()
	c.Gone()
}
