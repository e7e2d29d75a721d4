package ready

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	notReady  = `conditions: [{type: Ready, status: "False", reason: WaitingForAvailableMachines, message: 0 of 1}]`
	unhealthy = `phase: Running, conditions: [{type: Ready, status: "False", reason: Sick, message: x}]`
	badNode   = `phase: Running, conditions: [{type: Ready, status: "True"}, {type: NodeHealthy, status: "False", reason: NodeConditionsFailed, message: no network}]`
)

func unreadyDeployment() string {
	return replace(runningDeployment, "observedGeneration: 1,", "observedGeneration: 1, "+notReady+",")
}

func TestWaiter(t *testing.T) {
	deploymentWaits := "MachineDeployment md to be ready [WaitingForAvailableMachines: 0 of 1]"
	nodeWaits := "Nodes to be ready: m1 [NodeConditionsFailed: no network]"
	tests := []struct {
		reason      string
		change      []string
		want        []string
		wantLater   []string
		wantLacking []string
	}{
		{reason: "a cluster is ready if all rows are ready"},
		{
			reason: "what tables show as the state of a row is waited for, too: it may be older than what it is about",
			change: []string{replace(runningDeployment, "observedGeneration: 1,", `observedGeneration: 1, v1beta2: {conditions: [{type: Available, status: "False", `+
				`reason: NotAvailable, message: "0\n available"}]},`)},
			want:      []string{"MachineDeployment md to be available [NotAvailable: 0 available]"},
			wantLater: []string{"MachineDeployment md to be available [NotAvailable: 0 available]"},
		},
		{
			reason:    "an unready row is waited for without limit if Nodes are not the cause",
			change:    []string{unreadyDeployment()},
			want:      []string{deploymentWaits},
			wantLater: []string{deploymentWaits},
		},
		{
			reason:    "running Machines that are not ready are listed, up to a limit",
			change:    []string{machine("m1", unhealthy), machine("m2", unhealthy), machine("m3", unhealthy), machine("m4", unhealthy)},
			want:      []string{"Machines to be ready: m1 [Sick: x], m2 [Sick: x], m3 [Sick: x], 1 more"},
			wantLater: []string{"Machines to be ready: m1 [Sick: x], m2 [Sick: x], m3 [Sick: x], 1 more"},
		},
		{
			reason:      "unready Nodes are waited for until nodeTimeout, with everything that depends on them",
			change:      []string{unreadyDeployment(), machine("m1", badNode)},
			want:        []string{nodeWaits, deploymentWaits},
			wantLacking: []string{nodeWaits, deploymentWaits},
		},
		{
			reason:      "all rows may be ready while Nodes are not",
			change:      []string{machine("m1", badNode)},
			want:        []string{nodeWaits},
			wantLacking: []string{nodeWaits},
		},
		{
			reason:    "while Machines are missing, nodeTimeout has not started",
			change:    []string{machine("m1", badNode), machine("m2", "phase: Pending")},
			want:      []string{"Machines to be running: m2 (Pending)"},
			wantLater: []string{"Machines to be running: m2 (Pending)"},
		},
		{
			reason:    "the state of an unknown Node may be fine, so it is waited for without limit",
			change:    []string{unreadyDeployment(), machine("m1", `phase: Running, conditions: [{type: NodeHealthy, status: Unknown, reason: NodeInspectionFailed}]`)},
			want:      []string{deploymentWaits},
			wantLater: []string{deploymentWaits},
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			objects := running(t)
			for _, text := range tc.change {
				objects.Add(object(t, text))
			}
			clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC))
			w := &Waiter{Cluster: testCluster, Clock: clock}
			ask := func(want []string) {
				t.Helper()
				got, err := w.Remaining(objects)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
			ask(tc.want)
			clock.SetTime(clock.Now().Add(nodeTimeout - time.Second))
			ask(tc.want)
			clock.SetTime(clock.Now().Add(time.Second))
			ask(tc.wantLater)
			if diff := cmp.Diff(tc.wantLacking, w.lacking); diff != "" {
				t.Errorf("lacking: -want +got:\n%s", diff)
			}
		})
	}
}

func TestPatienceStartsAnew(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC))
	w := &Waiter{Cluster: testCluster, Clock: clock}
	steps := [][]*unstructured.Unstructured{{object(t, machine("m1", badNode))}, {object(t, machine("m1", "phase: Provisioning"))}, {object(t, machine("m1", badNode))}}
	for i, change := range steps {
		objects := running(t)
		for _, u := range change {
			objects.Add(u)
		}
		got, err := w.Remaining(objects)
		if err != nil || len(got) == 0 {
			t.Errorf("step %d: timeout must not end over the time when a Machine was replaced: %v, %v", i, got, err)
		}
		clock.SetTime(clock.Now().Add(nodeTimeout))
	}
}

// What commands print when a cluster is ready needs reports, for which it is not worth to wait long.
func TestWaiterForReports(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC))
	w := &Waiter{Cluster: testCluster, Clock: clock}
	late := []string{"MachineDeployment md to report whether it is available", "KubeadmControlPlane cp to report whether it is available"}
	available := []any{map[string]any{"type": "Available", "status": "True"}}
	for _, step := range []struct {
		reason string
		want   []string
		after  time.Duration
	}{
		{reason: "the reports are missing", want: late, after: reportTimeout - time.Second},
		{reason: "they are still missing", want: late, after: time.Second},
		{reason: "it has taken too long"},
	} {
		objects := running(t)
		cluster := objects.Cluster(testCluster)
		if err := unstructured.SetNestedSlice(cluster.Object, available, "status", "v1beta2", "conditions"); err != nil {
			t.Fatal(err)
		}
		got, err := w.Remaining(objects)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.reason, diff)
		}
		clock.SetTime(clock.Now().Add(step.after))
	}
}
