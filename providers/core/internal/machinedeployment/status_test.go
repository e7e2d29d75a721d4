package machinedeployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machineset"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/replicas"
)

// counted is a MachineSet and the counts of its Machines. Its status is not used, because it may be outdated.
type counted struct {
	*clusterv1.MachineSet
	tally machineset.Tally
}

// counting returns a set with spec.replicas and the counts of its Machines.
func counting(name string, spec, replicas, ready, available int32) *counted {
	set := machineSet(name, 1, spec)
	set.UID = types.UID(name)
	return &counted{set, machineset.Tally{Replicas: replicas, Ready: ready, Available: available}}
}

// statusOf returns the status of a deployment whose Machines have no metav1 conditions.
func statusOf(phase string, n counts, conditions ...clusterv1.Condition) clusterv1.MachineDeploymentStatus {
	md := &clusterv1.MachineDeployment{}
	md.Status.Phase, md.Status.Replicas = phase, &n.replicas
	setCounts(&md.Status, replicas.Counts{})
	md.SetV1Beta1Status(clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{
		Conditions: conditions, UpdatedReplicas: &n.updated, ReadyReplicas: &n.ready, AvailableReplicas: &n.available, UnavailableReplicas: &n.unavailable,
	})
	return md.Status
}

func TestStatus(t *testing.T) {
	available := condition.True(clusterv1.MachineDeploymentAvailableV1Beta1Condition)
	waiting := func(message string) clusterv1.Condition {
		return condition.False(clusterv1.MachineDeploymentAvailableV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForAvailableMachinesV1Beta1Reason, "%s", message)
	}
	noSet := condition.False(clusterv1.MachineSetReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForMachineSetFallbackV1Beta1Reason, "")
	failed := counting("b", 2, 2, 2, 2)
	failed.SetV1Beta1Status(clusterv1.MachineSetV1Beta1DeprecatedStatus{FailureMessage: ptr.To("broken")})
	isReady := counting("b", 2, 2, 2, 2)
	condition.Set(isReady, condition.False(clusterv1.ReadyV1Beta1Condition, clusterv1.ConditionSeverityError, "Some", "message"))
	cases := map[string]struct {
		reason      string
		replicas    int32
		unavailable int32
		current     *counted
		old         []*counted
		want        clusterv1.MachineDeploymentStatus
	}{
		"Nothing": {reason: "there are no sets yet", replicas: 1,
			want: statusOf("ScalingUp", counts{}, waiting("At least 1 replicas must be available, but only 0 are"), noSet)},
		"Zero": {reason: "no replicas are desired, and there are none", current: counting("b", 0, 0, 0, 0),
			want: statusOf("Running", counts{}, available, noSet)},
		"Starting": {reason: "no Machine is ready yet", replicas: 2, current: counting("b", 2, 2, 0, 0),
			want: statusOf("ScalingUp", counts{replicas: 2, updated: 2, unavailable: 2}, waiting("At least 2 replicas must be available, but only 0 are"), noSet)},
		"Running": {reason: "all Machines are ready; the Ready condition of the set is copied", replicas: 2, current: isReady,
			want: statusOf("Running", counts{replicas: 2, updated: 2, ready: 2, available: 2}, available, condition.False(clusterv1.MachineSetReadyV1Beta1Condition, clusterv1.ConditionSeverityError, "Some", "message"))},
		"Rolling": {reason: "one Machine may be unavailable", replicas: 3, unavailable: 1, current: counting("b", 2, 2, 1, 1), old: []*counted{counting("a", 1, 1, 1, 1)},
			want: statusOf("ScalingUp", counts{replicas: 3, updated: 2, ready: 2, available: 2, unavailable: 1}, available, noSet)},
		"Down": {reason: "there are more Machines than replicas of the sets", replicas: 1, current: counting("b", 1, 3, 3, 3),
			want: statusOf("ScalingDown", counts{replicas: 3, updated: 3, ready: 3, available: 3}, available, noSet)},
		"Surplus": {reason: "no phase applies while there are more ready Machines than desired", replicas: 2,
			current: counting("b", 2, 2, 2, 2), old: []*counted{counting("a", 1, 1, 1, 1)},
			want: statusOf("", counts{replicas: 3, updated: 2, ready: 3, available: 3}, available, noSet)},
		"Failed": {reason: "a failure takes precedence", replicas: 2, current: failed,
			want: statusOf("Failed", counts{replicas: 2, updated: 2, ready: 2, available: 2}, available, noSet)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			md := &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{
				Replicas: &tc.replicas, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			}, Status: clusterv1.MachineDeploymentStatus{ObservedGeneration: 7, Replicas: ptr.To[int32](99), Phase: "Unknown"}}
			s := &scope{deployment: md, listed: true, unavailable: tc.unavailable, tallies: map[types.UID]*machineset.Tally{}}
			if tc.current != nil {
				s.current = tc.current.MachineSet
				tc.old = append(tc.old, tc.current)
			}
			for _, c := range tc.old {
				s.sets, s.tallies[c.UID] = append(s.sets, c.MachineSet), &c.tally
			}
			if _, err := status(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			tc.want.Selector, tc.want.ObservedGeneration = "a=b", 7
			condition.Sort(tc.want.Deprecated.V1Beta1.Conditions)
			if diff := cmp.Diff(tc.want, md.Status); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatusBeforeCollect(t *testing.T) {
	md := &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{Replicas: ptr.To(int32(2))}, Status: statusOf("", counts{available: 2})}
	want := md.Status.DeepCopy()
	if _, err := status(t.Context(), &scope{deployment: md}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, &md.Status); diff != "" {
		t.Errorf("the MachineSets have not been listed, and the status was changed (-want +got):\n%s", diff)
	}
}
