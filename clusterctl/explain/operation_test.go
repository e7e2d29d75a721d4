package explain

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// TestOperations: an operation that could be read is explained by what it says itself, and not by what it does to the cluster.
func TestOperations(t *testing.T) {
	parse := func(text string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	cluster := parse(`{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: c1, namespace: ns, uid: c},
spec: {controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: cp}}}`)
	machine := parse(`{apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, metadata: {name: m, namespace: ns, uid: m,
labels: {cluster.x-k8s.io/cluster-name: c1, cluster.x-k8s.io/control-plane: ""}, deletionTimestamp: "2030-01-02T11:00:00Z"},
status: {conditions: [{type: Ready, status: "False", severity: Info, reason: Deleting}]}}`)
	for _, tt := range []struct {
		reason, kind, mode, says string
		state                    State
		message, action          string
	}{
		{"a restore names its step", "ControlPlaneRestore", "Hold", "Waiting, message: 'Step Fence: waiting for x'", Progressing,
			"until it completes. Step Fence: waiting for x", "See its steps"},
		{"a rotation that is paused", "CertificateAuthorityRotation", "Rotate", "Paused, message: 'The rotation is paused'", Blocked,
			"CertificateAuthorityRotation op is in progress. The rotation is paused", "Resume it: `kubectl patch"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			plane := parse(`{apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, metadata: {name: cp, namespace: ns, uid: p,
annotations: {fleet.cluster.x-k8s.io/operation-observed: u/` + tt.mode + `,
fleet.cluster.x-k8s.io/operation: '{"kind":"` + tt.kind + `","name":"op","uid":"u","mode":"` + tt.mode + `"}'}}}`)
			in := Input{
				Cluster: testCluster, Now: testTime, Objects: tree.NewObjects(cluster, plane),
				Operation: parse(`{status: {conditions: [{type: Completed, status: "False", reason: ` + tt.says + `}]}}`),
			}
			v := newView(in)
			causes := v.operations()
			if len(causes) != 1 || causes[0].State != tt.state || !strings.Contains(causes[0].Message, tt.message) ||
				!strings.HasPrefix(causes[0].Actions[0], tt.action) {
				t.Errorf("got %+v", causes)
			}
			in.Objects.Add(machine)
			v = newView(in)
			if hidden := v.consequence(v.cause(Deleting, Progressing, v.machines[0], nil, "x")); hidden != (tt.mode == "Hold") {
				t.Errorf("the deletion of a control plane Machine is a consequence: %t", hidden)
			}
		})
	}
}
