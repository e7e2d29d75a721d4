package journey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// gated is true when all of these Machines have these readiness gates, and this status of Ready in v1beta2.
func gated(which func(*Snapshot) []clusterv1.Machine, ready string, want ...string) Condition {
	return func(p *Snapshot) error {
		for _, m := range which(p) {
			var got []string
			for _, gate := range m.Spec.ReadinessGates {
				got = append(got, gate.ConditionType)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("readiness gates of Machine %s (-want +got):\n%s", m.Name, diff)
			}
			status := ""
			if m.Status.V1Beta2 != nil {
				for _, c := range m.Status.V1Beta2.Conditions {
					if c.Type == "Ready" {
						status = string(c.Status)
					}
				}
			}
			if status != ready {
				return fmt.Errorf("Ready of Machine %s is %q, want %s", m.Name, status, ready)
			}
		}
		return nil
	}
}

// passes sets a condition of a Machine to True, as a controller of a user does.
func (c *Subject) passes(m *clusterv1.Machine, gate string) {
	c.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	u.SetKind("Machine")
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	body := fmt.Sprintf(`[{"op": "add", "path": "/status/conditions/-", "value":
		{"type": %q, "status": "True", "reason": "Checked", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}}]`, gate)
	testenv.Must(c.t, c.Client.Status().Patch(c.t.Context(), u, client.RawPatch(types.JSONPatchType, []byte(body))))
}

// TestReadinessGates: gates of templates are on Machines of the control plane and of workers, also on those that exist already. A Machine
// is ready when they are healthy.
func TestReadinessGates(t *testing.T) {
	t.Parallel()
	manifest := Plain{ControlPlanes: 1, Workers: 1}.String()
	const before = "  machineTemplate: {"
	if strings.Count(manifest, before) != 1 {
		t.Fatalf("the manifest does not have %q once", before)
	}
	manifest = strings.Replace(manifest, before, before+"readinessGates: [{conditionType: example.com/First}], ", 1)
	c := shared.World(t).Plain(manifest)
	plane, workers := (*Snapshot).ControlPlane, (*Snapshot).Workers
	c.Eventually("the new Machine waits for its gate", Ready, ControlPlanes(1), Workers(1),
		gated(plane, "Unknown", "example.com/First"), gated(workers, "True"))
	first := c.Snapshot()
	still := c.Always("no Machine is replaced", SameMachines(plane, first), SameMachines(workers, first))
	c.passes(&first.ControlPlane()[0], "example.com/First")
	c.Eventually("its gate is healthy", gated(plane, "True", "example.com/First"))

	patch := func(obj client.Object, body string) {
		testenv.Must(t, c.Client.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))))
	}
	patch(&first.ControlPlanes.Items[0], `{"spec": {"machineTemplate": {"readinessGates": [{"conditionType": "example.com/Second"}]}}}`)
	patch(&first.Deployments.Items[0], `{"spec": {"template": {"spec": {"readinessGates": [{"conditionType": "example.com/Third"}]}}}}`)
	c.Eventually("existing Machines get other gates", gated(plane, "Unknown", "example.com/Second"), gated(workers, "Unknown", "example.com/Third"))
	c.passes(&first.ControlPlane()[0], "example.com/Second")
	c.passes(&first.Workers()[0], "example.com/Third")
	c.Eventually("they are ready again", Ready, gated(plane, "True", "example.com/Second"), gated(workers, "True", "example.com/Third"))
	still()
	c.Gone()
}
