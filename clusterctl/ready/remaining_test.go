package ready

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

var testCluster = types.NamespacedName{Namespace: "ns", Name: "c1"}

// object reads an object of the test's Cluster.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	// As the API server sends numbers.
	raw, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace(testCluster.Namespace)
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = testCluster.Name
	u.SetLabels(labels)
	return u
}

const (
	runningCluster = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c1}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: cp}
  topology:
    class: quick
    version: v1.30.0
    controlPlane: {replicas: 1}
    workers: {machineDeployments: [{class: w, name: md-0, replicas: 1}]}
status:
  conditions: [{type: ControlPlaneInitialized, status: "True"}, {type: TopologyReconciled, status: "True"}]`
	runningPlane = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: cp, generation: 2}
spec: {replicas: 1, version: v1.30.0}
status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1}`
	runningDeployment = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: md, generation: 1, labels: {topology.cluster.x-k8s.io/deployment-name: md-0}}
spec: {replicas: 1, template: {spec: {version: v1.30.0}}}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1}`
	planeMachine  = `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, metadata: {name: m0, labels: {cluster.x-k8s.io/control-plane: ""}}, status: {phase: Running}}`
	workerMachine = `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, metadata: {name: m1}, status: {phase: Running}}`
)

func running(t *testing.T) *tree.Objects {
	o := tree.NewObjects()
	for _, text := range []string{runningCluster, runningPlane, runningDeployment, planeMachine, workerMachine} {
		o.Add(object(t, text))
	}
	return o
}

func TestRemaining(t *testing.T) {
	deleting := object(t, workerMachine)
	deleting.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
	for name, tc := range map[string]struct {
		reason string
		change []*unstructured.Unstructured
		want   []string
	}{
		"Running": {reason: "Nothing is missing: Nodes may need what the user installs next."},
		"Nothing known": {
			reason: "A Cluster that was just written has no status.",
			change: []*unstructured.Unstructured{object(t, `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: c1}, spec: {topology: {class: quick, version: v1.30.0}}}`)},
			want:   []string{"the objects of the topology to be created", "the control plane to be initialized"},
		},
		"Topology not carried out": {
			reason: "The condition may still be about an earlier topology, the objects are compared.",
			change: []*unstructured.Unstructured{object(t, replace(runningCluster, "name: md-0, replicas: 1", "name: md-0, replicas: 2"))},
			want:   []string{"MachineDeployment md-0 to match the topology"},
		},
		"Another version": {
			reason: "An upgrade is not done before the control plane has the new version.",
			change: []*unstructured.Unstructured{object(t, replace(runningCluster, "version: v1.30.0", "version: v1.31.0"))},
			want:   []string{"the control plane to match the topology"},
		},
		"New deployment": {
			reason: "A MachineDeployment that does not exist yet is waited for.",
			change: []*unstructured.Unstructured{object(t, replace(runningDeployment, "deployment-name: md-0", "deployment-name: md-9"))},
			want:   []string{"MachineDeployment md-0 to match the topology"},
		},
		"Not reconciled": {
			reason: "The reason is included.",
			change: []*unstructured.Unstructured{object(t, replace(runningCluster, `{type: TopologyReconciled, status: "True"}`, `{type: TopologyReconciled, status: "False", reason: Hook, message: wait for me}`))},
			want:   []string{"the topology to be reconciled [Hook: wait for me]"},
		},
		"Old observation": {
			reason: "The status of an older spec is ignored.",
			change: []*unstructured.Unstructured{object(t, replace(runningPlane, "generation: 2", "generation: 3"))},
			want:   []string{"the controller of KubeadmControlPlane cp to observe its latest generation"},
		},
		"Rollout": {
			reason: "Machines of an older template are outdated.",
			change: []*unstructured.Unstructured{object(t, replace(runningDeployment, "updatedReplicas: 1", "updatedReplicas: 0"))},
			want:   []string{"MachineDeployment md to have 1 up-to-date Machines instead of 0"},
		},
		"Too few": {
			reason: "Machines that do not exist yet are waited for.",
			change: []*unstructured.Unstructured{
				object(t, replace(runningCluster, "controlPlane: {replicas: 1}", "controlPlane: {replicas: 3}")),
				object(t, replace(runningPlane, "spec: {replicas: 1", "spec: {replicas: 3")),
			},
			want: []string{"KubeadmControlPlane cp to have 3 Machines instead of 1"},
		},
		"Machines": {
			reason: "Machines are listed with their state, up to a limit.",
			change: []*unstructured.Unstructured{
				deleting, object(t, machine("m2", `phase: Provisioning, conditions: [{type: Ready, status: "False", reason: Waiting}]`)),
				object(t, machine("m3", `phase: Failed`)), object(t, machine("m4", "")),
			},
			want: []string{"Machines to be running: m1 (Running), m2 (Provisioning [Waiting]), m3 (Failed), 1 more"},
		},
		"Pool": {
			reason: "A MachinePool is running when it has its Nodes.",
			change: []*unstructured.Unstructured{object(t, `{apiVersion: cluster.x-k8s.io/v1beta1, kind: MachinePool, metadata: {name: mp}, spec: {replicas: 2}, status: {nodeRefs: [{name: n1}]}}`)},
			want:   []string{"MachinePool mp to have 2 Nodes instead of 1"},
		},
	} {
		t.Run(name, func(t *testing.T) { check(t, tc.reason, tc.change, tc.want) })
	}
}

func check(t *testing.T, reason string, change []*unstructured.Unstructured, want []string) {
	t.Helper()
	objects := running(t)
	for _, u := range change {
		objects.Add(u)
	}
	got, err := Remaining(testCluster, objects)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n-want +got:\n%s", reason, diff)
	}
}

func TestRemainingOfTheCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change []*unstructured.Unstructured
		want   []string
	}{
		"Infrastructure": {
			reason: "A Cluster whose infrastructure is not ready, or no longer, is not done.",
			change: []*unstructured.Unstructured{object(t, replace(runningCluster, "spec:\n", "spec:\n  infrastructureRef: {kind: ToyCluster, name: i}\n"))},
			want:   []string{"the infrastructure to be ready"},
		},
		"Hosted control plane": {
			reason: "A control plane without Machines says itself when it is ready.",
			change: []*unstructured.Unstructured{object(t, replace(runningPlane, "spec: {replicas: 1, ", "spec: {"))},
			want:   []string{"KubeadmControlPlane cp to be ready"},
		},
		"Outdated Machines": {
			reason: "The condition of the control plane may know before its counters.",
			change: []*unstructured.Unstructured{object(t, replace(runningPlane, "status: {", `status: {conditions: [{type: MachinesSpecUpToDate, status: "False", reason: RollingUpdateInProgress}], `))},
			want:   []string{"KubeadmControlPlane cp to have up-to-date Machines [RollingUpdateInProgress]"},
		},
		"Paused": {
			reason: "Nothing happens to a paused Cluster.",
			change: []*unstructured.Unstructured{object(t, replace(runningCluster, "spec:\n", "spec:\n  paused: true\n"))},
			want:   []string{"the Cluster to be resumed: spec.paused is true"},
		},
		"Removed deployment": {
			reason: "What the topology no longer has is deleted first.",
			change: []*unstructured.Unstructured{object(t, replace(runningCluster, "{machineDeployments: [{class: w, name: md-0, replicas: 1}]}", "{}"))},
			want:   []string{"MachineDeployment md-0, which the topology no longer has, to be deleted"},
		},
		"A version of its own": {
			reason: "A group with a version of its own has that, not the version of the topology.",
			change: []*unstructured.Unstructured{
				object(t, replace(runningCluster, "name: md-0, replicas: 1", "name: md-0, replicas: 1, version: v1.29.0")),
				object(t, replace(runningDeployment, "version: v1.30.0", "version: v1.29.0")),
			},
		},
		"Another version of its own": {
			reason: "It is waited for, too.",
			change: []*unstructured.Unstructured{object(t, replace(runningCluster, "name: md-0, replicas: 1", "name: md-0, replicas: 1, version: v1.29.0"))},
			want:   []string{"MachineDeployment md-0 to match the topology"},
		},
		"Pool of an older version": {
			reason: "MachinePools of a topology are compared as MachineDeployments are.",
			change: []*unstructured.Unstructured{
				object(t, replace(runningCluster, "workers: {", "workers: {machinePools: [{class: p, name: mp-0, replicas: 2}], ")),
				object(t, `{apiVersion: cluster.x-k8s.io/v1beta1, kind: MachinePool, metadata: {name: mp, labels: {topology.cluster.x-k8s.io/pool-name: mp-0}}, spec: {replicas: 2, template: {spec: {version: v1.29.0}}}, status: {nodeRefs: [{name: n1}, {name: n2}]}}`),
			},
			want: []string{"MachinePool mp-0 to match the topology"},
		},
	} {
		t.Run(name, func(t *testing.T) { check(t, tc.reason, tc.change, tc.want) })
	}
}

func TestWaitingInVain(t *testing.T) {
	deleting := object(t, runningCluster)
	deleting.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
	failed := object(t, replace(runningCluster, "\nstatus:", "\nstatus:\n  failureReason: CreateError\n  failureMessage: no such region"))
	for want, objects := range map[string]*tree.Objects{
		"the Cluster was deleted":                                      tree.NewObjects(),
		"the Cluster is being deleted":                                 tree.NewObjects(deleting),
		"the Cluster failed permanently (CreateError): no such region": tree.NewObjects(failed),
	} {
		if _, err := Remaining(testCluster, objects); err == nil || err.Error() != want {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func machine(name, status string) string {
	return fmt.Sprintf("{apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, metadata: {name: %s}, status: {%s}}", name, status)
}

func replace(text, old, replacement string) string {
	if !strings.Contains(text, old) {
		panic("the text does not contain " + old)
	}
	return strings.Replace(text, old, replacement, 1)
}
