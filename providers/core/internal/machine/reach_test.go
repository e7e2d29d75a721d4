package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

// TestUnreachableWorkloadCluster deletes a Machine whose workload cluster is unreachable.
func TestUnreachableWorkloadCluster(t *testing.T) {
	const drainKind, volumeKind = clusterv1.DrainingSucceededV1Beta1Condition, clusterv1.VolumeDetachSucceededV1Beta1Condition
	const message, skipped = "not connected to the workload cluster default/c: refused", "Skipped: the workload cluster could not be reached for 10m0s"
	lost := func(since time.Duration) error {
		return &remote.NotConnectedError{Cluster: (&scope{machine: machine()}).key(), Since: now.Add(-since), Cause: errors.New("refused")}
	}
	at := func(c clusterv1.Condition, age time.Duration) *clusterv1.Condition {
		c.LastTransitionTime = metav1.NewTime(now.Add(-age))
		return &c
	}
	notDrained := func(text string) clusterv1.Condition {
		return condition.False(drainKind, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedV1Beta1Reason, "%s", text)
	}
	attached := func(text string) clusterv1.Condition {
		return condition.False(volumeKind, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForVolumeDetachV1Beta1Reason, "%s", text)
	}
	begun := condition.False(drainKind, clusterv1.ConditionSeverityInfo, clusterv1.DrainingV1Beta1Reason, draining)
	gaveUpDraining, gaveUpDetaching := notDrained(skipped), attached(skipped)
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		volumes bool
		away    error
		want    *clusterv1.Condition
		after   time.Duration
	}{
		"JustLost":     {reason: "a single failure does not skip the drain", machine: machine(withNode, deleting), away: lost(time.Second), want: at(notDrained(message), 0), after: 10*time.Minute - time.Second},
		"LongDrain":    {reason: "the time before the connection was lost does not count", machine: machine(withNode, deleting, since(begun, 5*time.Hour)), away: lost(time.Second), want: at(notDrained(message), 5*time.Hour), after: 10*time.Minute - time.Second},
		"NearTheEnd":   {reason: "the remaining time is waited for", machine: machine(withNode, deleting, since(begun, time.Hour)), away: lost(10*time.Minute - 5*time.Second), want: at(notDrained(message), time.Hour), after: 5 * time.Second},
		"GivesUp":      {reason: "the condition reports the skipped drain", machine: machine(withNode, deleting), away: lost(10 * time.Minute), want: &gaveUpDraining},
		"GaveUp":       {reason: "the condition is set once", machine: machine(withNode, deleting, since(gaveUpDraining, time.Minute)), away: lost(11 * time.Minute), want: at(gaveUpDraining, time.Minute)},
		"OwnLimit":     {reason: "a longer timeout of the Machine applies", machine: machine(withNode, deleting, drainLimit(time.Hour), since(begun, 20*time.Minute)), away: lost(15 * time.Minute), want: at(notDrained(message), 20*time.Minute), after: 40 * time.Minute},
		"OwnLimitOver": {reason: "a shorter timeout of the Machine applies", machine: machine(withNode, deleting, drainLimit(time.Minute), since(begun, time.Minute)), away: lost(time.Second), want: at(begun, time.Minute)},
		"FirstTry":     {reason: "the first attempt to connect is not reported", machine: machine(withNode, deleting), away: connecting(t), after: 10 * time.Second},
		"TimeUnknown":  {reason: "without a known time, the deletion timestamp counts", machine: machine(withNode, deleting), away: remote.ErrNotConnected, want: at(notDrained("not connected to the workload cluster"), 0), after: 10*time.Minute - time.Second},
		"Volumes":      {reason: "volumes have the same limit", machine: machine(withNode, deleting), volumes: true, away: lost(time.Second), want: at(attached(message), 0), after: 10*time.Minute - time.Second},
		"VolumesLimit": {reason: "volumes have a timeout of their own", machine: machine(withNode, deleting, volumeLimit(time.Minute)), volumes: true, away: lost(time.Hour), want: at(attached(message), 0), after: time.Minute},
		"VolumesLeft":  {reason: "the condition reports the skipped wait", machine: machine(withNode, deleting), volumes: true, away: lost(time.Hour), want: &gaveUpDetaching},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.workload.Err = tc.away
			do, kind := w.drain, drainKind
			if tc.volumes {
				do, kind = w.volumes, volumeKind
			}
			r, err := do(t.Context(), &scope{machine: tc.machine, cluster: build.Cluster()})
			if err != nil || r.After() != tc.after || r.Ends() != (tc.after > 0) || w.drained != 0 {
				t.Errorf("%s: waits for %q at most %s, drained %d times, err = %v", tc.reason, r.Waiting(), r.After(), w.drained, err)
			}
			if diff := cmp.Diff(tc.want, condition.Get(tc.machine, kind)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
