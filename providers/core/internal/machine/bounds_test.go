package machine

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestHostileObjects reconciles a Machine whose infrastructure and Node have oversized values.
func TestHostileObjects(t *testing.T) {
	long := strings.Repeat("ä", 200<<10)
	addresses := make([]any, 5000)
	for i := range addresses {
		addresses[i] = fields{"type": "InternalIP", "address": "10.0.0.1"}
	}
	addresses[0] = fields{"type": "InternalDNS", "address": long}
	w := newWorld(t, build.Cluster(object.Initialized), machine(), config(fields{"status": fields{"ready": true, "dataSecretName": "s"}}), infraMachine(fields{
		"spec": fields{"providerID": id},
		"status": fields{
			"ready": true, "failureMessage": long, "failureReason": long, "addresses": addresses,
			"conditions": []any{fields{"type": "Ready", "status": "False", "severity": "Warning", "reason": long, "message": long}},
		},
	}))
	hostile := node(healthy, func(n *corev1.Node) {
		n.Status.NodeInfo.OSImage, n.Status.NodeInfo.KubeletVersion = long, long
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(long)}}
	})
	testenv.Must(t, w.workload.Client.Create(t.Context(), hostile))
	w.reconcile(t)
	m := machine()
	testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	if !m.Status.NodeRef.IsDefined() || len(m.Status.Addresses) != maxAddresses {
		t.Fatalf("%d addresses and Node %v; want oversized values to be truncated", len(m.Status.Addresses), m.Status.NodeRef)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 64<<10 {
		t.Errorf("the Machine has %d bytes, want at most 64 KiB", len(raw))
	}
	if text := *m.GetV1Beta1Status().FailureMessage; !utf8.ValidString(text) || !strings.HasSuffix(text, "...") {
		t.Errorf("message = %.50q; want it to be truncated between characters", text)
	}
	w.Writes = nil
	if w.reconcile(t); len(w.Writes) != 0 {
		t.Errorf("a truncated value is no change, wrote %q", w.Writes)
	}
}

func TestHostileProviderID(t *testing.T) {
	for name, f := range map[string]fields{
		"ProviderID":    {"providerID": strings.Repeat("x", bounds.ProviderID+1)},
		"FailureDomain": {"providerID": id, "failureDomain": strings.Repeat("x", bounds.Token+1)},
	} {
		t.Run(name, func(t *testing.T) {
			w, m := newWorld(t, infraMachine(fields{"spec": f, "status": fields{"ready": true}})), machine()
			if _, err := w.step(t, "infrastructure", &scope{machine: m, cluster: build.Cluster()}); err == nil || m.Spec.ProviderID != "" || len(err.Error()) > 500 {
				t.Errorf("got %.600v, want a short error", err)
			}
		})
	}
}

// TestNodeOfAnotherMachine has two infrastructure machines with the same provider ID.
func TestNodeOfAnotherMachine(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		other  *clusterv1.Machine
		want   bool
	}{
		"Rival":        {"another Machine has the Node already", machine(named("m-2"), withNode), false},
		"NotYet":       {"the other Machine has no Node yet", machine(named("m-2"), withProviderID), true},
		"OtherCluster": {"provider IDs of other clusters do not conflict", machine(named("m-2"), withNode, func(m *clusterv1.Machine) { m.Spec.ClusterName = "d" }), true},
	} {
		t.Run(name, func(t *testing.T) {
			w, m := newWorld(t, infraMachine(nil), c.other), machine(withProviderID)
			testenv.Must(t, w.workload.Client.Create(t.Context(), node(healthy)))
			r, err := w.step(t, "node", &scope{machine: m, cluster: build.Cluster(object.Initialized)})
			if err != nil || m.Status.NodeRef.IsDefined() != c.want || r.Ends() == c.want || (len(w.Writes) > 0) != c.want {
				t.Errorf("%s: Node %v, wrote %q, waits for %q, err = %v", c.reason, m.Status.NodeRef, w.Writes, r.Waiting(), err)
			}
		})
	}
}

// TestUserLabelsAreKept has a Node whose annotation was edited to list labels that cannot come from Machines.
func TestUserLabelsAreKept(t *testing.T) {
	n := node(func(n *corev1.Node) {
		n.Labels = map[string]string{"users": "", "node.cluster.x-k8s.io/ours": ""}
		n.Annotations = map[string]string{clusterv1.LabelsFromMachineAnnotation: "users,node.cluster.x-k8s.io/ours"}
	})
	Selection{}.sync(n, machine())
	if diff := cmp.Diff(map[string]string{"users": ""}, n.Labels); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRejectedKubeconfigIsReported has a kubeconfig that the policy rejects.
func TestRejectedKubeconfigIsReported(t *testing.T) {
	const kind = clusterv1.MachineNodeHealthyV1Beta1Condition
	why := &remote.NotConnectedError{Cluster: (&scope{machine: machine()}).key(), Cause: &remote.RejectedError{What: "a program", Allow: "exec"}}
	rejected := "not connected to the workload cluster default/c: rejected: a program (only allowed with --workload-cluster-allow=exec)"
	for name, c := range map[string]struct {
		reason  string
		machine *clusterv1.Machine
		want    clusterv1.Condition
	}{
		"NoNode": {"the Machine waits for its Node, and the condition has the reason", machine(withProviderID), condition.False(kind, clusterv1.ConditionSeverityWarning, clusterv1.NodeProvisioningV1Beta1Reason, "%s", rejected)},
		"Node":   {"the health of the Node is unknown", machine(withNode), condition.Unknown(kind, clusterv1.NodeInspectionFailedV1Beta1Reason, "%s", rejected)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.workload.Err = why
			if _, err := w.step(t, "node", &scope{machine: c.machine, cluster: build.Cluster(object.Initialized)}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(ptr.To(c.want), condition.Get(c.machine, kind)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}
