package recovery

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// decideTest is about three Machines a, b and c, of which only b responds, and a confirmed recovery from b, unless change says otherwise.
type decideTest struct {
	reason string
	change func(*fleetv1.ControlPlaneRecovery)
	want   string // reason and a part of the message; empty: it may begin
	after  time.Duration
}

func testDecide(t *testing.T, tests []decideTest) {
	t.Helper()
	now := object.Now()
	confirmed := fleetv1.ControlPlaneRecoverySpec{ClusterName: "prod", Survivor: "b", LostMachines: []string{"c", "a"}, Confirm: "prod/b"}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			r := &fleetv1.ControlPlaneRecovery{Spec: *confirmed.DeepCopy(), Status: fleetv1.ControlPlaneRecoveryStatus{
				Voters: 3, QuorumLostTime: &metav1.Time{Time: now.Add(-11 * time.Minute)}, Members: []fleetv1.RecoveryMember{
					{Machine: "a"}, {Machine: "b", Reachable: true, RaftIndex: 100}, {Machine: "c"},
				},
			}}
			tt.change(r)
			got := decide(r, now)
			said := strings.TrimSpace(got.reason + " " + got.message)
			if tt.want == "" && said != "" || !strings.Contains(said, tt.want) || got.after != tt.after {
				t.Errorf("got %q, again after %s\nwant %q, %s", said, got.after, tt.want, tt.after)
			}
		})
	}
}

// TestDecide is about what there is to recover from.
func TestDecide(t *testing.T) {
	testDecide(t, []decideTest{
		{reason: "everything is right", change: func(*fleetv1.ControlPlaneRecovery) {}},
		{
			reason: "etcd with a quorum is left alone",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Status.Members[1].Leader = "1" },
			want:   "Refused etcd has a quorum: the member on Machine b knows leader 1",
		},
		{
			reason: "members that respond are a quorum, although they have not elected a leader",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Status.Members[0].Reachable = true },
			want:   "Refused 2 of 3 etcd members respond, which is a quorum, but they elect no leader",
		},
		{
			reason: "members without a Machine count",
			change: func(r *fleetv1.ControlPlaneRecovery) {
				r.Status.Members[0].Reachable, r.Status.Voters, r.Status.Members[0].RaftIndex = true, 5, 1
			},
		},
		{
			reason: "nothing is left",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Status.Members[1].Reachable = false },
			want:   "Refused no etcd member responds to its infrastructure provider; without one, use a ControlPlaneRestore",
		},
		{
			reason: "without a survivor, the one with the most data is proposed",
			change: func(r *fleetv1.ControlPlaneRecovery) {
				r.Spec = fleetv1.ControlPlaneRecoverySpec{ClusterName: "prod"}
				r.Status.Voters, r.Status.Members[2].Reachable, r.Status.Members[2].RaftIndex = 5, true, 101
			},
			want: `NotConfirmed The member on Machine c has the highest raft index of those that respond, 101: to recover from it, set spec.survivor to "c", ` +
				`spec.lostMachines to ["a", "b"] and spec.confirm to "prod/c"`,
		},
		{
			reason: "a learner is not proposed",
			change: func(r *fleetv1.ControlPlaneRecovery) {
				r.Spec = fleetv1.ControlPlaneRecoverySpec{ClusterName: "prod"}
				r.Status.Voters, r.Status.Members[2].Reachable, r.Status.Members[2].RaftIndex, r.Status.Members[2].Learner = 5, true, 101, true
			},
			want: "NotConfirmed The member on Machine b has the highest raft index",
		},
	})
}

// TestDecideAsConfirmed is about what the user wants to recover from, and give up.
func TestDecideAsConfirmed(t *testing.T) {
	testDecide(t, []decideTest{
		{
			reason: "the survivor of the user, without a confirmation",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Spec.Confirm = "" },
			want:   `To recover from Machine b, set spec.survivor to "b", spec.lostMachines to ["a", "c"] and spec.confirm to "prod/b"`,
		},
		{
			reason: "the confirmation is of another survivor",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Spec.Confirm = "prod/a" },
			want:   `Refused spec.confirm must be "prod/b". Delete this object`,
		},
		{
			reason: "the survivor is no Machine of the control plane",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Spec.Survivor, r.Spec.Confirm = "x", "prod/x" },
			want:   `Refused spec.survivor: Machine "x" is none of the control plane's: a, b, c`,
		},
		{
			reason: "the survivor does not respond",
			change: func(r *fleetv1.ControlPlaneRecovery) {
				r.Spec.Survivor, r.Spec.Confirm, r.Status.Members[0].Message = "a", "prod/a", "container a does not run"
			},
			want: "Refused spec.survivor: the etcd member on Machine a does not respond: container a does not run",
		},
		{
			reason: "the survivor has not all data yet",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Status.Members[1].Learner = true },
			want:   "Refused spec.survivor: the etcd member on Machine b is a learner",
		},
		{
			reason: "another one has more data",
			change: func(r *fleetv1.ControlPlaneRecovery) {
				r.Status.Voters, r.Status.Members[2].Reachable, r.Status.Members[2].RaftIndex = 5, true, 101
			},
			want: "Refused spec.survivor: the member on Machine b has raft index 100, that on Machine c has 101",
		},
		{
			reason: "another one has more data, which the user gives up",
			change: func(r *fleetv1.ControlPlaneRecovery) {
				r.Status.Voters, r.Status.Members[2].Reachable, r.Status.Members[2].RaftIndex = 5, true, 101
				r.Spec.AllowLowerRaftIndex = true
			},
		},
		{
			reason: "the user does not know all Machines that will be deleted",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Spec.LostMachines = []string{"a"} },
			want:   `Refused spec.lostMachines must be all other Machines of the control plane, ["a", "c"]`,
		},
		{
			reason: "a Machine that is gone",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Spec.LostMachines = []string{"a", "c", "d"} },
			want:   `Refused spec.lostMachines must be all other Machines of the control plane, ["a", "c"]`,
		},
	})
}

// TestDecideWhen is about how long the quorum has been lost.
func TestDecideWhen(t *testing.T) {
	now := object.Now()
	testDecide(t, []decideTest{
		{
			reason: "the quorum may return",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Status.QuorumLostTime.Time = now.Add(-9 * time.Minute) },
			want:   "Waiting The quorum must have been lost for 10m0s", after: time.Minute,
		},
		{
			reason: "the user decides for how long",
			change: func(r *fleetv1.ControlPlaneRecovery) {
				r.Status.QuorumLostTime.Time, r.Spec.MinimumLossSeconds = now.Add(-9*time.Minute), ptr.To[int32](60)
			},
		},
		{
			reason: "the loss has not been seen yet",
			change: func(r *fleetv1.ControlPlaneRecovery) { r.Status.QuorumLostTime = nil },
			want:   "Waiting Waiting for answers", after: operation.Poll,
		},
	})
}
