package healthcheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestMachineChanges(t *testing.T) {
	tests := []struct {
		reason string
		change func(*clusterv1.Machine)
		want   bool
	}{
		{"nothing", func(*clusterv1.Machine) {}, false},
		{"an address", func(m *clusterv1.Machine) { m.Status.Addresses = clusterv1.MachineAddresses{{Address: "a"}} }, false},
		{"the phase", func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, false},
		{"a label", func(m *clusterv1.Machine) { m.Labels = map[string]string{"a": "b"} }, true},
		{"an annotation", func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
		}, true},
		{"a Node", object.WithNode("a"), true},
		{"its health", func(m *clusterv1.Machine) {
			condition.Set(m, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
		}, true},
		{"a failure", fails, true},
		{"deletion", object.Deleting[*clusterv1.Machine], true},
		{"the owner's work", func(m *clusterv1.Machine) {
			condition.Set(m, condition.True(clusterv1.MachineOwnerRemediatedV1Beta1Condition))
		}, true},
		{"another condition", func(m *clusterv1.Machine) { condition.Set(m, condition.True(clusterv1.ReadyV1Beta1Condition)) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			after := build.Machine("a")
			tt.change(after)
			if got := machineChanges().Update(event.UpdateEvent{ObjectOld: build.Machine("a"), ObjectNew: after}); got != tt.want {
				t.Errorf("selected: %t", got)
			}
		})
	}
}

func TestNodeChanges(t *testing.T) {
	ready := node("a", corev1.ConditionTrue, 0)
	beat := ready.DeepCopy()
	beat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	beat.Labels = map[string]string{"a": "b"}
	if nodeChanged(ready, beat) {
		t.Error("heartbeats and labels do not count")
	}
	for _, after := range []*corev1.Node{node("a", corev1.ConditionUnknown, 0), node("a", corev1.ConditionTrue, 1e9), object.Node("a")} {
		if !nodeChanged(ready, after) {
			t.Errorf("%v must count", after.Status.Conditions)
		}
	}
}

// TestRequests checks which checks are reconciled for an event.
func TestRequests(t *testing.T) {
	w := newWorld(t, check("1"), running("a")...)
	other := func(name string, change func(*clusterv1.MachineHealthCheck)) {
		testenv.Must(t, w.Create(t.Context(), build.MachineHealthCheck(name, change)))
	}
	other("labels", func(h *clusterv1.MachineHealthCheck) { h.Spec.Selector.MatchLabels = map[string]string{"pool": "x"} })
	other("cluster", func(h *clusterv1.MachineHealthCheck) { h.Spec.ClusterName = "o" })
	other("conditions", func(h *clusterv1.MachineHealthCheck) {
		h.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{{Type: "NetworkReady", Status: "False"}}
	})
	c := w.check.control
	names := func(requests []reconcile.Request) (out []string) {
		for _, r := range requests {
			out = append(out, r.Name)
		}
		return out
	}
	cluster := types.NamespacedName{Namespace: "default", Name: "c"}
	request := build.Provided(requestKind, "a", object.Fields{})
	request.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Machine", Name: "a"}})
	for reason, tt := range map[string]struct{ got, want []string }{
		"a Machine":            {names(c.ofMachine(t.Context(), w.machine("a"))), []string{"conditions", "h"}},
		"its conditions":       {names(c.ofConditions(t.Context(), w.machine("a"))), []string{"conditions"}},
		"its Node":             {names(c.ofNode(t.Context(), cluster, object.Node("a"))), []string{"conditions", "h"}},
		"another Node":         {names(c.ofNode(t.Context(), cluster, object.Node("b"))), nil},
		"another cluster":      {names(c.ofNode(t.Context(), types.NamespacedName{Namespace: "default", Name: "o"}, object.Node("a"))), nil},
		"a connection":         {names(c.ofConnection(t.Context(), cluster)), []string{"conditions", "h", "labels"}},
		"the Cluster":          {names(c.ofCluster(t.Context(), build.Cluster())), []string{"conditions", "h", "labels"}},
		"a request":            {names(c.ofRequest(t.Context(), request)), []string{"conditions", "h"}},
		"an object of another": {names(c.ofRequest(t.Context(), client.Object(build.Provided(requestKind, "a", object.Fields{})))), nil},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", reason, diff)
		}
	}
}
