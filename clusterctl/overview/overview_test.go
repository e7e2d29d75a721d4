package overview

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

const base = `
kind: Cluster
apiVersion: cluster.x-k8s.io/v1beta1
metadata: {name: c1, namespace: ns, creationTimestamp: "2030-01-02T12:00:00Z"}
spec:
  topology: {class: quick, version: v1.31.0}
  controlPlaneEndpoint: {host: c1.example.com, port: 6443}
  infrastructureRef: {kind: ToyCluster}
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: cp}
status:
  phase: Provisioned
  infrastructureReady: true
  conditions: [{type: TopologyReconciled, status: "True"}, {type: Ready, status: "True"}, {type: ControlPlaneInitialized, status: "True"}]
---
kind: KubeadmControlPlane
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
metadata: {name: cp, namespace: ns}
spec: {replicas: 3, version: v1.31.0}
status: {replicas: 3, readyReplicas: 3, updatedReplicas: 3, version: v1.31.0}
---
kind: MachineDeployment
apiVersion: cluster.x-k8s.io/v1beta1
metadata: {name: md, namespace: ns}
spec: {clusterName: c1, replicas: 2}
status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2}
---
kind: MachinePool
apiVersion: cluster.x-k8s.io/v1beta1
metadata: {name: mp, namespace: ns}
spec: {clusterName: c1, replicas: 1}
status: {replicas: 1, readyReplicas: 1}
---
kind: MachineDeployment
apiVersion: cluster.x-k8s.io/v1beta1
metadata: {name: md, namespace: other}
spec: {clusterName: c1, replicas: 5}
`

func parse(t *testing.T, text string) *tree.Objects {
	t.Helper()
	objects := tree.NewObjects()
	for document := range strings.SplitSeq(text, "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		objects.Add(u)
	}
	return objects
}

func TestRows(t *testing.T) {
	want := []Row{{
		Namespace: "ns", Name: "c1", Class: "quick", Version: "v1.31.0", Phase: "Provisioned", Ready: "True",
		ControlPlane: &Replicas{Kind: "KubeadmControlPlane", Desired: 3, Ready: 3, Updated: 3}, Workers: Replicas{Desired: 3, Ready: 3, Updated: 3},
		Created: metav1.NewTime(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)), Infrastructure: "ToyCluster", Endpoint: "c1.example.com:6443",
	}}
	if diff := cmp.Diff(want, Rows(parse(t, base)), cmpopts.IgnoreUnexported(Replicas{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestActivity(t *testing.T) {
	const planeStatus, workersStatus = "status: {replicas: 3, readyReplicas: 3, updatedReplicas: 3, version: v1.31.0}", "status: {replicas: 2, readyReplicas: 2, updatedReplicas: 2}"
	tests := []struct {
		reason, from, to, want string
	}{
		{"nothing goes on", "", "", ""},
		{"paused", "spec:\n  topology", "spec:\n  paused: true\n  topology", "paused"},
		{"deleting", `creationTimestamp: "2030-01-02T12:00:00Z"`, `deletionTimestamp: "2030-01-02T12:00:00Z"`, "deleting"},
		{"failed", "phase: Provisioned", "failureReason: CreateError", "failed permanently"},
		{"no infrastructure", "infrastructureReady: true", "infrastructureReady: false", "waiting for infrastructure"},
		{"no control plane", `, {type: ControlPlaneInitialized, status: "True"}`, "", "waiting for control plane"},
		{"the topology fails", `TopologyReconciled, status: "True"`, `TopologyReconciled, status: "False", severity: Error`, "class cannot be applied"},
		{
			"the class does not exist", "  infrastructureRef: {kind: ToyCluster}\n  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: " +
				"KubeadmControlPlane, name: cp}\nstatus:\n  phase: Provisioned\n  infrastructureReady: true\n  conditions: [{type: TopologyReconciled, status: \"True\"}",
			"status:\n  conditions: [{type: TopologyReconciled, status: \"False\", severity: Info}", "waiting for its class",
		},
		{"a hook blocks", `TopologyReconciled, status: "True"`, `TopologyReconciled, status: "False", reason: LifecycleHookBlocking`, "waiting for a lifecycle hook"},
		{"the control plane is upgraded", planeStatus, "status: {replicas: 4, readyReplicas: 3, updatedReplicas: 1, version: v1.30.0}", "upgrading control plane 1/3"},
		{"a topology that has not reached the control plane", "version: v1.31.0}\n  controlPlaneEndpoint", "version: v1.32.0}\n  controlPlaneEndpoint", "upgrading control plane 0/3"},
		{"the control plane is rolled out", planeStatus, "status: {replicas: 3, readyReplicas: 3, updatedReplicas: 1, version: v1.31.0}", "rolling out control plane 1/3"},
		{"the control plane is scaled", planeStatus, "status: {replicas: 1, readyReplicas: 1, updatedReplicas: 1, version: v1.31.0}", "scaling control plane 1/3"},
		{"a control plane Machine is not ready", planeStatus, "status: {replicas: 3, readyReplicas: 2, updatedReplicas: 3, version: v1.31.0}", "waiting for control plane 2/3"},
		{"workers are rolled out", workersStatus, "status: {replicas: 2, readyReplicas: 2}", "rolling out workers 1/3"},
		{"workers are not ready", workersStatus, "status: {replicas: 2, readyReplicas: 1, updatedReplicas: 2}", "waiting for workers 2/3"},
		{"anything else", `type: Ready, status: "True"`, `type: Ready, status: "False", reason: Odd`, "not ready: Odd"},
		{"a lifecycle hook holds the deletion", `status:
  phase: Provisioned
  infrastructureReady: true
  conditions: [{type: TopologyReconciled, status: "True"`, `status:
  conditions: [{type: TopologyReconciled, status: "False", reason: LifecycleHookBlocking, message: BeforeClusterDelete`, "waiting for a lifecycle hook"},
		{"a MachineDeployment is missing", "version: v1.31.0}\n  controlPlaneEndpoint", "version: v1.31.0, workers: {machineDeployments: [{class: a, name: new}]}}\n  controlPlaneEndpoint", "waiting for MachineDeployment new to match the topology"},
		{"an upgrade is deferred", `TopologyReconciled, status: "True"`, `TopologyReconciled, status: "False", reason: MachineDeploymentsUpgradeDeferred`, "upgrade of workers is deferred"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			text := strings.Replace(base, tc.from, tc.to, 1)
			if tc.from != "" && text == base {
				t.Fatal("the case changes nothing")
			}
			if have := Rows(parse(t, text))[0].Activity; have != tc.want {
				t.Errorf("activity %q, want %q", have, tc.want)
			}
		})
	}
}
