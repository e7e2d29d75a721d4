package journey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// domains counts Machines by failure domain.
func domains(machines []clusterv1.Machine) map[string]int {
	found := map[string]int{}
	for _, m := range machines {
		found[ptr.Deref(m.Spec.FailureDomain, "")]++
	}
	return found
}

// inDomains is true when the Machines are spread over failure domains like this, and their Nodes have these zones.
func (c *Subject) inDomains(which func(*Snapshot) []clusterv1.Machine, want map[string]int) Condition {
	return func(p *Snapshot) error {
		if diff := cmp.Diff(want, domains(which(p))); diff != "" {
			return fmt.Errorf("Machines by failure domain (-want +got):\n%s", diff)
		}
		nodes, err := c.Workload().Nodes(c.t.Context())
		if err != nil {
			return err
		}
		zones := map[string]string{}
		for _, n := range nodes {
			zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
		}
		for _, m := range which(p) {
			if zone := zones[m.Status.NodeRef.Name]; zone != ptr.Deref(m.Spec.FailureDomain, "") {
				return fmt.Errorf("Node %s is in zone %q, its Machine in %v", m.Status.NodeRef.Name, zone, value(m.Spec.FailureDomain))
			}
		}
		return nil
	}
}

func setFailureDomain(name string) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachineDeployments[0].FailureDomain = &name }
}

// TestFailureDomains spreads a control plane over the failure domains that the infrastructure reports for control planes, and places
// workers where class and topology say.
func TestFailureDomains(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	objects, err := readObjects(w.Tools.ProjectTemplate().Class)
	if err != nil {
		t.Fatal(err)
	}
	zones := map[string]any{
		"a": map[string]any{"controlPlane": true, "attributes": map[string]any{"rack": "1"}},
		"b": map[string]any{"controlPlane": true}, "c": map[string]any{"controlPlane": true}, "d": map[string]any{},
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "InMemoryClusterTemplate":
			err = unstructured.SetNestedMap(o.Object, zones, "spec", "template", "spec", "failureDomains")
		case "ClusterClass":
			workers, _, _ := unstructured.NestedSlice(o.Object, "spec", "workers", "machineDeployments")
			workers[0].(map[string]any)["failureDomain"] = "d"
			err = unstructured.SetNestedSlice(o.Object, workers, "spec", "workers", "machineDeployments")
		}
		if err != nil {
			t.Fatal(err)
		}
		w.Applied(o)
	}
	c := w.Subject(NewCluster("c", "in-memory").ControlPlanes(3).Workers(2).Build())
	spread := c.inDomains((*Snapshot).ControlPlane, map[string]int{"a": 1, "b": 1, "c": 1})
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(3), Workers(2), c.WorkloadMatches, spread,
		c.inDomains((*Snapshot).Workers, map[string]int{"d": 2}), func(p *Snapshot) error {
			want := clusterv1.FailureDomains{"a": {ControlPlane: true, Attributes: map[string]string{"rack": "1"}}, "b": {ControlPlane: true}, "c": {ControlPlane: true}, "d": {}}
			if diff := cmp.Diff(want, p.Cluster.Status.FailureDomains); diff != "" {
				return fmt.Errorf("failure domains of the Cluster (-want +got):\n%s", diff)
			}
			return nil
		})
	before := c.Snapshot()
	still := c.Always("only workers are moved", SameMachines((*Snapshot).ControlPlane, before), AvailableWorkers(2))
	c.Change(setFailureDomain("b"))
	c.Eventually("the workers are replaced in another failure domain", Ready, Workers(2), NewMachines((*Snapshot).Workers, before),
		c.inDomains((*Snapshot).Workers, map[string]int{"b": 2}), c.WorkloadMatches)
	still()
	c.Change(SetVersion(newer))
	c.Eventually("the control plane is spread again after an upgrade", Ready, ControlPlanes(3), Workers(2), Version(newer), spread, c.WorkloadMatches)
	c.Gone()
}

// TestWorkersAreSpread spreads one MachineDeployment over all failure domains, by its annotation, and keeps it spread when it is scaled.
func TestWorkersAreSpread(t *testing.T) {
	t.Parallel()
	const before, spread = "metadata: {name: workers}\nspec:\n  clusterName", "machineset.cluster.x-k8s.io/spread-over-failure-domains"
	manifest := Plain{ControlPlanes: 1, Workers: 3, Infrastructure: "failureDomains: {a: {controlPlane: true}, b: {}, c: {}}"}.String()
	if strings.Count(manifest, before) != 1 {
		t.Fatalf("the manifest does not have %q once", before)
	}
	c := shared.World(t).Plain(strings.Replace(manifest, before, "metadata: {name: workers, annotations: {"+spread+": ''}}\nspec:\n  clusterName", 1))
	each := func(n int) Condition {
		return c.inDomains((*Snapshot).Workers, map[string]int{"a": n, "b": n, "c": n})
	}
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(3), each(1), c.WorkloadMatches)
	for _, replicas := range []int{6, 3} {
		md := c.Snapshot().Deployments.Items[0]
		patch := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas)
		testenv.Must(t, c.Client.Patch(t.Context(), &md, client.RawPatch(types.MergePatchType, patch)))
		c.Eventually(fmt.Sprintf("%d workers are spread", replicas), Ready, Workers(replicas), each(replicas/3))
	}
	c.Gone()
}
