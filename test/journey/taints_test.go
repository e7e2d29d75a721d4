package journey

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// tainted is true when the only Node whose name begins with prefix has these taints with keys of example.com, as kubectl prints them.
func (c *Subject) tainted(prefix string, want ...string) Condition {
	return func(*Snapshot) error {
		nodes, err := c.Workload().Nodes(c.t.Context())
		if err != nil {
			return err
		}
		nodes = slices.DeleteFunc(nodes, func(n corev1.Node) bool { return !strings.HasPrefix(n.Name, prefix) })
		if len(nodes) != 1 {
			return fmt.Errorf("%d Nodes with names that begin with %s", len(nodes), prefix)
		}
		var got []string
		for i := range nodes[0].Spec.Taints {
			if t := &nodes[0].Spec.Taints[i]; strings.HasPrefix(t.Key, "example.com/") {
				got = append(got, t.ToString())
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("taints of Node %s (-want +got):\n%s", nodes[0].Name, diff)
		}
		return nil
	}
}

// TestTaints: taints of templates are on the Nodes of control planes and workers. A change of the template changes Nodes, and replaces no
// Machine; a taint for new Nodes is set once.
func TestTaints(t *testing.T) {
	t.Parallel()
	manifest := Plain{ControlPlanes: 1, Workers: 1}.String()
	for _, r := range []struct{ before, after string }{
		{"  machineTemplate: {", "  machineTemplate: {taints: [{key: example.com/plane, effect: PreferNoSchedule, propagation: Always}], "},
		{"      clusterName: c\n      version: v1.30.5\n", "      clusterName: c\n      version: v1.30.5\n      taints:\n" +
			"      - {key: example.com/kept, value: a, effect: NoSchedule, propagation: Always}\n" +
			"      - {key: example.com/once, effect: PreferNoSchedule, propagation: OnInitialization}\n"},
	} {
		if strings.Count(manifest, r.before) != 1 {
			t.Fatalf("the manifest does not have %q once", r.before)
		}
		manifest = strings.Replace(manifest, r.before, r.after, 1)
	}
	c := newExtensionWorld(t).Plain(manifest)
	c.Eventually("the Nodes of the Cluster have taints", Ready, ControlPlanes(1), Workers(1), c.tainted("c-", "example.com/plane:PreferNoSchedule"),
		c.tainted("workers-", "example.com/kept=a:NoSchedule", "example.com/once:PreferNoSchedule"))
	before := c.Snapshot()
	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before))

	c.removeTaint("workers-", "example.com/once")
	patch := func(obj client.Object, body string) {
		testenv.Must(t, c.Client.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))))
	}
	patch(&before.Deployments.Items[0], `{"spec": {"template": {"spec": {"taints": [
		{"key": "example.com/kept", "value": "b", "effect": "NoSchedule", "propagation": "Always"},
		{"key": "example.com/once", "effect": "PreferNoSchedule", "propagation": "OnInitialization"},
		{"key": "example.com/new", "effect": "PreferNoSchedule", "propagation": "Always"}]}}}}`)
	patch(&before.ControlPlanes.Items[0], `{"spec": {"machineTemplate": {"taints": null}}}`)
	c.Eventually("the Nodes follow the templates", Ready, c.tainted("c-"),
		c.tainted("workers-", "example.com/kept=b:NoSchedule", "example.com/new:PreferNoSchedule"))
	still()
	c.Gone()
}

// removeTaint removes a taint from the Node whose name begins with prefix, as a client of the workload cluster does.
func (c *Subject) removeTaint(prefix, key string) {
	c.t.Helper()
	nodes, err := c.Workload().Nodes(c.t.Context())
	testenv.Must(c.t, err)
	for i := range nodes {
		n := &nodes[i]
		if !strings.HasPrefix(n.Name, prefix) {
			continue
		}
		before := n.DeepCopy()
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
		testenv.Must(c.t, c.Workload().client.Patch(c.t.Context(), n, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})))
	}
}
