package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// recordedStates returns the folder with what Cluster API v1.14.0 wrote, and its states.
func recordedStates(t *testing.T) (folder string, states []string) {
	t.Helper()
	root := os.Getenv("CAPI_FACTS_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "..", "shared", "facts")
	}
	folder = filepath.Join(root, "data", "recorded", "v1.14.0")
	const suffix = ".cluster.v1beta2.json"
	paths, err := filepath.Glob(filepath.Join(folder, "*"+suffix))
	if err != nil || len(paths) == 0 {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/recorded (%v)", err)
	}
	for _, path := range paths {
		states = append(states, strings.TrimSuffix(filepath.Base(path), suffix))
	}
	return folder, states
}

func recordedObjects(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	testenv.Must(t, err)
	var raw []json.RawMessage
	testenv.Must(t, json.Unmarshal(content, &raw))
	out := make([]*unstructured.Unstructured, len(raw))
	for i := range raw {
		out[i] = &unstructured.Unstructured{}
		testenv.Must(t, out[i].UnmarshalJSON(raw[i]))
	}
	return out
}

// decoded decodes an object.
func decoded[T client.Object](t *testing.T, u *unstructured.Unstructured, into T) T {
	t.Helper()
	testenv.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into))
	return into
}

// recordedScope returns the scope of a reconcile of the Cluster in a recorded state, and the status that was recorded. What other controllers
// write into the Cluster is there from the beginning.
func recordedScope(t *testing.T, folder, state string, version contract.Version) (*scope, clusterv1.ClusterStatus) {
	t.Helper()
	s, want := &scope{family: &family{}}, &clusterv1.Cluster{}
	for _, u := range recordedObjects(t, filepath.Join(folder, state+".cluster.v1beta2.json")) {
		switch u.GetKind() {
		case clusterv1.ClusterKind:
			s.Cluster, want = decoded(t, u, &clusterv1.Cluster{}), decoded(t, u, &clusterv1.Cluster{})
		case clusterv1.MachineDeploymentKind:
			s.family.deployments = append(s.family.deployments, *decoded(t, u, &clusterv1.MachineDeployment{}))
		case clusterv1.MachineSetKind:
			s.family.sets = append(s.family.sets, *decoded(t, u, &clusterv1.MachineSet{}))
		case clusterv1.MachineKind:
			m := decoded(t, u, &clusterv1.Machine{})
			s.family.machines = append(s.family.machines, m)
			if at := m.CreationTimestamp.Add(time.Second); at.After(s.now) {
				s.now = at
			}
		}
	}
	for _, u := range recordedObjects(t, filepath.Join(folder, state+".controlplane."+string(version)+".json")) {
		if u.GetKind() == "KubeadmControlPlane" {
			s.plane = reference.FoundOf(contract.Object{Unstructured: u, Contract: version}, true, nil)
		}
	}
	for _, u := range recordedObjects(t, filepath.Join(folder, state+".infrastructure.v1alpha1.json")) {
		if u.GetKind() == "InMemoryCluster" {
			s.infrastructure = reference.FoundOf(contract.Object{Unstructured: u, Contract: contract.V1Beta1}, true, nil)
		}
	}
	kept := []string{clusterv1.ClusterTopologyReconciledCondition}
	if s.DeletionTimestamp != nil {
		kept = append(kept, clusterv1.ClusterRemoteConnectionProbeCondition)
	} else if condition.IsTrue(s.Cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) {
		s.connection = &connection{up: true}
	}
	before := s.Status
	before.Conditions, before.ControlPlane, before.Workers = nil, nil, nil
	for _, t := range kept {
		before.Conditions = append(before.Conditions, *report.Get(s.Cluster, t))
	}
	if ptr.Deref(s.Spec.Paused, false) { // It was reconciled before it was paused, and not since.
		before.Conditions[0] = report.True(clusterv1.ClusterTopologyReconciledCondition, clusterv1.ClusterTopologyReconcileSucceededReason, "")
	}
	if p := want.Status.Workers; p != nil {
		before.Workers = &clusterv1.WorkersStatus{UpgradePlan: p.UpgradePlan}
	}
	s.Status = before
	return s, want.Status
}

// later are the conditions that differ because Machines were recorded moments after the Cluster, by state and type: what the Cluster reports
// about the recorded Machines.
func later() map[string]metav1.Condition {
	return map[string]metav1.Condition{
		"1-creating WorkerMachinesReady": report.Unknown("WorkerMachinesReady", "ReadyUnknown",
			"* Machines x-md-0-jg5ck-lqjvt-bqk7n, x-md-0-jg5ck-lqjvt-cbz6z: Condition Ready not yet reported"),
		"5-scaling ControlPlaneMachinesReady": report.False("ControlPlaneMachinesReady", "NotReady", "%s", strings.Join([]string{
			"* Machine x-w9wwr-qs77r:", "  * Deleting: Machine deletion in progress, stage: WaitingForInfrastructureDeletion",
			"  * Control plane components: Machine is deleting", "  * EtcdMemberHealthy: Machine is deleting"}, "\n")),
		"8-deleting WorkerMachinesReady": report.False("WorkerMachinesReady", "NotReady", "%s", strings.Join([]string{
			"* Machines x-md-0-jg5ck-tfszx-4hgsm, x-md-0-jg5ck-tfszx-cbk74, x-md-0-jg5ck-tfszx-jsxhm, ... (1 more):",
			"  * Deleting: Machine deletion in progress, stage: WaitingForBootstrapDeletion"}, "\n")),
	}
}

// TestRecordedReports: conditions and counters of a Cluster in eight states are those that Cluster API v1.14.0 wrote, for control planes
// of both versions of the contract.
func TestRecordedReports(t *testing.T) {
	folder, states := recordedStates(t)
	for _, version := range []contract.Version{contract.V1Beta1, contract.V1Beta2} {
		for _, state := range states {
			t.Run(state+" "+string(version), func(t *testing.T) {
				s, want := recordedScope(t, folder, state, version)
				_, err := (&Controller{}).counters(t.Context(), s)
				testenv.Must(t, err)
				report.Set(s.Cluster, 1, s.now, reports(s)...)
				if ptr.Deref(s.Spec.Paused, false) {
					paused := report.True(clusterv1.PausedCondition, clusterv1.PausedReason, "Cluster spec.paused is set to true")
					report.Set(s.Cluster, 1, s.now, whilePaused(s.Cluster, paused)...)
				}
				for i, c := range want.Conditions {
					if other, ok := later()[state+" "+c.Type]; ok {
						want.Conditions[i] = other
					}
				}
				got := clusterv1.ClusterStatus{
					Conditions: bare(s.GetConditions()), ControlPlane: s.Status.ControlPlane, Workers: s.Status.Workers,
				}
				if diff := cmp.Diff(clusterv1.ClusterStatus{
					Conditions: bare(want.Conditions), ControlPlane: want.ControlPlane, Workers: want.Workers,
				}, got); diff != "" {
					t.Errorf("-recorded +reported:\n%s", diff)
				}
			})
		}
	}
}

// bare returns conditions without times and generations, and without Paused, which the Runner adds.
func bare(conditions []metav1.Condition) []metav1.Condition {
	var all []metav1.Condition
	for _, c := range conditions {
		if c.Type != clusterv1.PausedCondition {
			all = append(all, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return all
}
