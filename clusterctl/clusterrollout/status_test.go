package clusterrollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// running returns a rollout with a plan and two stages, in a phase.
func running(phase fleetv1.RolloutPhase) *fleetv1.ClusterRollout {
	r := &fleetv1.ClusterRollout{}
	r.Namespace, r.Name, r.UID, r.Generation = "default", "up", "uid", 1
	r.Spec.Change = fleetv1.RolloutChange{ClassRef: fleetv1.RolloutClassReference{Name: "v2"}, Version: "v1.31.0"}
	r.Spec.Strategy = &fleetv1.RolloutStrategy{Stages: []fleetv1.RolloutStage{{Name: "canary"}, {Name: "rest", Gate: fleetv1.RolloutGateApproval}}}
	r.Status.ObservedGeneration, r.Status.Phase, r.Status.Strategy = 1, phase, r.Spec.Strategy
	r.Status.Plan = &fleetv1.RolloutPlan{Hash: "abc", Clusters: ptr.To[int32](12), Replacing: ptr.To[int32](12), Machines: ptr.To[int32](60)}
	r.Status.Conditions = []metav1.Condition{{Type: fleetv1.RolloutCompletedCondition, Status: metav1.ConditionFalse, Message: "It is at work"}}
	return r
}

// entry returns what a rollout knows of a Cluster.
func entry(cluster, stage string, state fleetv1.RolloutState, minutes int, message string) Entry {
	return Entry{cluster, &fleetv1.RolloutEntry{
		Rollout: "up", ID: "uid", Stage: stage, State: state, Since: metav1.NewTime(now.Add(-time.Duration(minutes) * time.Minute)), Message: message,
	}}
}

// TestStatus shows a rollout of 1,000 Clusters in a few lines.
func TestStatus(t *testing.T) {
	r := running(fleetv1.RolloutHalted)
	r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
		Type: fleetv1.RolloutHaltedCondition, Status: metav1.ConditionTrue, Message: "4 Clusters of stage rest have failed, of at most 3",
	})
	r.Status.Stages = []fleetv1.RolloutStageStatus{
		{Name: "canary", Total: 2, Done: 2, SoakUntil: ptr.To(metav1.NewTime(now.Add(time.Hour)))}, {Name: "rest", Total: 900, ApprovedBy: "alice"},
	}
	all := []Entry{
		entry("a", "canary", fleetv1.RolloutStateDone, 90, ""), entry("b", "canary", fleetv1.RolloutStateSkipped, 90, "b was not healthy before"),
	}
	for i := range 4 {
		name := fmt.Sprintf("bad-%d", i)
		all = append(all, entry(name, "rest", fleetv1.RolloutStateFailed, 10, "MachineDeployment "+name+"-md is not available"))
	}
	for i := range 12 {
		all = append(all, entry(fmt.Sprintf("busy-%02d", i), "rest", fleetv1.RolloutStateUpdating, 30-i, "the control plane is rolling out"))
	}
	for i := range 982 {
		all = append(all, entry(fmt.Sprintf("w-%03d", i), "rest", fleetv1.RolloutStateWaiting, 60, ""))
	}
	lines := StatusOf(r, all).Lines(now, func(command string) string { return command })
	want := `ClusterRollout default/up: Halted, 1 of 1000 Clusters done, 4 failed, 1 skipped
Change: ClusterClass v2, version v1.31.0
4 Clusters of stage rest have failed, of at most 3
Plan abc: 12 Clusters; in 12, 60 Machines are replaced

STAGE   CLUSTERS  WAITING  UPDATING  DONE  FAILED  SKIPPED  ROLLED BACK
canary  2         0        0         1     0       1        0            soak ends in 60m
rest    998       982      12        0     4       0        0            approved by alice

In change (12):
  busy-00  rest, updating for 30m: the control plane is rolling out
  busy-01  rest, updating for 29m: the control plane is rolling out
  busy-02  rest, updating for 28m: the control plane is rolling out
  busy-03  rest, updating for 27m: the control plane is rolling out
  busy-04  rest, updating for 26m: the control plane is rolling out
  busy-05  rest, updating for 25m: the control plane is rolling out
  busy-06  rest, updating for 24m: the control plane is rolling out
  busy-07  rest, updating for 23m: the control plane is rolling out
  busy-08  rest, updating for 22m: the control plane is rolling out
  busy-09  rest, updating for 21m: the control plane is rolling out
  ... and 2 more, for a shorter time

Failed (4):
  bad-0, bad-1, bad-2 and 1 more: MachineDeployment <cluster>-md is not available

Skipped (1):
  b: <cluster> was not healthy before

Next:
  Continue, and consider Clusters that have failed anew: clusterctl rollout retry up -n default
  End it: clusterctl rollout abort up -n default
  End it, and set back what it has changed, except for the version: clusterctl rollout abort up -n default --rollback`
	got := strings.ReplaceAll(strings.Join(lines, "\n"), "soak ends in 1h", "soak ends in 60m")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestStatusWithoutEntries: another rollout has replaced the entries, or they may not be read.
func TestStatusWithoutEntries(t *testing.T) {
	r := running(fleetv1.RolloutCompleted)
	r.Status.Stages = []fleetv1.RolloutStageStatus{{Name: "canary", Total: 2, Done: 2}, {Name: "rest", Total: 5, Done: 5}}
	s := StatusOf(r, nil)
	if got := s.headline(); got != "ClusterRollout default/up: Completed, 7 of 7 Clusters done" || len(s.Next) > 0 {
		t.Errorf("status %q, next %v", got, s.Next)
	}
}

func TestNext(t *testing.T) {
	for phase, want := range map[fleetv1.RolloutPhase]string{
		fleetv1.RolloutWaitingForApproval: "clusterctl rollout approve up -n default --stage rest --plan-hash abc",
		fleetv1.RolloutHalted:             "clusterctl rollout retry up -n default",
		fleetv1.RolloutPaused:             "clusterctl rollout resume clusterrollout/up -n default",
		fleetv1.RolloutProgressing:        "clusterctl rollout pause clusterrollout/up -n default",
		fleetv1.RolloutCompleted:          "",
	} {
		got := ""
		if steps := Next(running(phase)); len(steps) > 0 {
			got = steps[0].Command
		}
		if got != want {
			t.Errorf("%s: %q, want %q", phase, got, want)
		}
	}
}

// TestEntries reads the entries of one rollout only.
func TestEntries(t *testing.T) {
	of := func(name string, e Entry) client.Object {
		c := member(name, "rest")
		testenv.Must(t, fleetv1.SetRolloutEntry(c, e.RolloutEntry))
		return c
	}
	other := entry("b", "rest", fleetv1.RolloutStateDone, 1, "")
	other.ID = "other"
	broken := member("d", "rest")
	broken.Annotations = map[string]string{fleetv1.RolloutAnnotation: "{"}
	c := server(t, of("a", entry("a", "rest", fleetv1.RolloutStateDone, 1, "")), of("b", other), member("c", "rest"), broken)
	got, err := Entries(t.Context(), c, running(fleetv1.RolloutProgressing))
	if err != nil || len(got) != 1 || got[0].Cluster != "a" {
		t.Errorf("entries %+v, %v", got, err)
	}
}

func TestNotice(t *testing.T) {
	c := member("a", "rest")
	testenv.Must(t, fleetv1.SetRolloutEntry(c, entry("a", "rest", fleetv1.RolloutStateWaiting, 5, "").RolloutEntry))
	halted := running(fleetv1.RolloutHalted)
	halted.Status.Conditions[0].Message = "too many have failed"
	moved := running(fleetv1.RolloutProgressing)
	moved.UID, moved.Annotations = "new", map[string]string{fleetv1.RolloutIDAnnotation: "uid"}
	another := running(fleetv1.RolloutProgressing)
	another.UID = "another"
	for _, tc := range []struct {
		reason  string
		rollout *fleetv1.ClusterRollout
		want    string
	}{
		{"it is at work", moved, "this Cluster, in stage rest, has been waiting for 5m. The rollout is progressing: see `clusterctl rollout status up -n default`"},
		{"it has halted", halted, "The rollout has halted: too many have failed: see `clusterctl rollout status up -n default`"},
		{"it has ended", running(fleetv1.RolloutCompleted), ""},
		{"another one has its name", another, ""},
	} {
		got := Notice(t.Context(), server(t, tc.rollout), c, now)
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
	if got := Notice(t.Context(), server(t), c, now); got != "" {
		t.Errorf("without the rollout: %q", got)
	}
}
