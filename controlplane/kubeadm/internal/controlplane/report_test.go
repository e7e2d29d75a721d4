package controlplane

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// The aggregates tell of Machines from the first one on, before the cluster is initialised as after it. What is not known
// of one Machine does not outweigh what is known of another; alone it is not taken for health.
func TestAggregates(t *testing.T) {
	const info, warning, bad = clusterv1.ConditionSeverityInfo, clusterv1.ConditionSeverityWarning, clusterv1.ConditionSeverityError
	ready := func(c clusterv1.Condition) *clusterv1.Condition { c.Type = clusterv1.ReadyCondition; return &c }
	coming := ready(condition.False("", info, clusterv1.WaitingForInfrastructureFallbackReason, "1 of 2 completed"))
	cases := []struct {
		reason  string
		of      []*clusterv1.Condition // Ready of the Machines a, b and c; nil: they have none
		started bool
		want    *clusterv1.Condition
	}{
		{reason: "nothing is said before a Machine says anything", of: []*clusterv1.Condition{nil, nil, nil}},
		{
			reason: "the first Machine comes up", of: []*clusterv1.Condition{coming, nil, nil},
			want: new(condition.False(controlplanev1.MachinesReadyCondition, info, clusterv1.WaitingForInfrastructureFallbackReason+" @ Machine/a", "0 of 3 completed")),
		},
		{
			reason: "so does another one later", of: []*clusterv1.Condition{ready(condition.True("")), coming, nil}, started: true,
			want: new(condition.False(controlplanev1.MachinesReadyCondition, info, clusterv1.WaitingForInfrastructureFallbackReason+" @ Machine/b", "1 of 3 completed")),
		},
		{
			reason: "the worst decides", started: true,
			of:   []*clusterv1.Condition{coming, ready(condition.False("", bad, "Broken", "")), ready(condition.False("", warning, "W", ""))},
			want: new(condition.False(controlplanev1.MachinesReadyCondition, bad, "Broken @ Machine/b", "0 of 3 completed")),
		},
		{
			reason: "of none is anything known", started: true, of: []*clusterv1.Condition{ready(condition.Unknown("", "U", "")), nil, nil},
			want: new(condition.Unknown(controlplanev1.MachinesReadyCondition, "U @ Machine/a", "0 of 3 completed")),
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, _ := three(t)
			b.kcp.Status.Initialized = tc.started
			for i, c := range tc.of {
				if c != nil {
					condition.Set(b.machines[i].Machine, *c)
				}
			}
			b.aggregate()
			if diff := cmp.Diff(tc.want, condition.Get(b.kcp, controlplanev1.MachinesReadyCondition)); diff != "" {
				t.Errorf("MachinesReady (-want +got):\n%s", diff)
			}
		})
	}
}

// Topologies, scaling and preflight checks read these: a first status that holds one of them does not wait.
func TestConditionsThatAreReadDoNotWait(t *testing.T) {
	for _, read := range []clusterv1.ConditionType{clusterv1.ReadyCondition, controlplanev1.AvailableCondition, controlplanev1.MachinesReadyCondition, controlplanev1.ResizedCondition} {
		if slices.Contains(progress().FirstTrue, read) {
			t.Errorf("condition %s waits", read)
		}
	}
}

// Waiting for a Machine that comes up is no news; waiting for one that worked is.
func TestWhatFailedIsToldFromWhatStarts(t *testing.T) {
	for worked, want := range map[bool]bool{true: true, false: false} {
		b, f := three(t)
		delete(f.pods, "kube-scheduler-b")
		reload(t, b, f)
		if !worked {
			condition.Delete(b.named("b"), controlplanev1.MachineSchedulerPodHealthyCondition)
		}
		if _, err := b.inspect(t.Context(), b.scope); err != nil {
			t.Fatal(err)
		}
		if b.failed != want || condition.IsTrue(b.named("b"), controlplanev1.MachineSchedulerPodHealthyCondition) {
			t.Errorf("it worked before: %t; counts as failed: %t, want %t", worked, b.failed, want)
		}
	}
}
