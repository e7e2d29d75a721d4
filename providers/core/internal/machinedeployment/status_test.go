package machinedeployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
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

func TestStatus(t *testing.T) {
	available := condition.True(clusterv1.MachineDeploymentAvailableCondition)
	waiting := func(message string) clusterv1.Condition {
		return condition.False(clusterv1.MachineDeploymentAvailableCondition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForAvailableMachinesReason, "%s", message)
	}
	noSet := condition.False(clusterv1.MachineSetReadyCondition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForMachineSetFallbackReason, "")
	failed := counting("b", 2, 2, 2, 2)
	failed.Status.FailureMessage = ptr.To("broken")
	isReady := counting("b", 2, 2, 2, 2)
	condition.Set(isReady, condition.False(clusterv1.ReadyCondition, clusterv1.ConditionSeverityError, "Some", "message"))
	cases := map[string]struct {
		reason      string
		replicas    int32
		unavailable int32
		current     *counted
		old         []*counted
		want        clusterv1.MachineDeploymentStatus
	}{
		"Nothing": {reason: "there are no sets yet", replicas: 1,
			want: clusterv1.MachineDeploymentStatus{Phase: "ScalingUp", Conditions: clusterv1.Conditions{waiting("At least 1 replicas must be available, but only 0 are"), noSet}}},
		"Zero": {reason: "no replicas are desired, and there are none", current: counting("b", 0, 0, 0, 0),
			want: clusterv1.MachineDeploymentStatus{Phase: "Running", Conditions: clusterv1.Conditions{available, noSet}}},
		"Starting": {reason: "no Machine is ready yet", replicas: 2, current: counting("b", 2, 2, 0, 0),
			want: clusterv1.MachineDeploymentStatus{Phase: "ScalingUp", Replicas: 2, UpdatedReplicas: 2, UnavailableReplicas: 2,
				Conditions: clusterv1.Conditions{waiting("At least 2 replicas must be available, but only 0 are"), noSet}}},
		"Running": {reason: "all Machines are ready; the Ready condition of the set is copied", replicas: 2, current: isReady,
			want: clusterv1.MachineDeploymentStatus{Phase: "Running", Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
				Conditions: clusterv1.Conditions{available, condition.False(clusterv1.MachineSetReadyCondition, clusterv1.ConditionSeverityError, "Some", "message")}}},
		"Rolling": {reason: "one Machine may be unavailable", replicas: 3, unavailable: 1, current: counting("b", 2, 2, 1, 1), old: []*counted{counting("a", 1, 1, 1, 1)},
			want: clusterv1.MachineDeploymentStatus{Phase: "ScalingUp", Replicas: 3, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, UnavailableReplicas: 1,
				Conditions: clusterv1.Conditions{available, noSet}}},
		"Down": {reason: "there are more Machines than replicas of the sets", replicas: 1, current: counting("b", 1, 3, 3, 3),
			want: clusterv1.MachineDeploymentStatus{Phase: "ScalingDown", Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
				Conditions: clusterv1.Conditions{available, noSet}}},
		"Surplus": {reason: "no phase applies while there are more ready Machines than desired", replicas: 2,
			current: counting("b", 2, 2, 2, 2), old: []*counted{counting("a", 1, 1, 1, 1)},
			want: clusterv1.MachineDeploymentStatus{Replicas: 3, UpdatedReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 3,
				Conditions: clusterv1.Conditions{available, noSet}}},
		"Failed": {reason: "a failure takes precedence", replicas: 2, current: failed,
			want: clusterv1.MachineDeploymentStatus{Phase: "Failed", Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
				Conditions: clusterv1.Conditions{available, noSet}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			md := &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{
				Replicas: &tc.replicas, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			}, Status: clusterv1.MachineDeploymentStatus{ObservedGeneration: 7, Replicas: 99, Phase: "Unknown"}}
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
			setCounts(&tc.want, replicas.Counts{}) // There are no Machines here.
			condition.Sort(tc.want.Conditions)
			if diff := cmp.Diff(tc.want, md.Status); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatusBeforeCollect(t *testing.T) {
	md := &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{Replicas: ptr.To(int32(2))}, Status: clusterv1.MachineDeploymentStatus{AvailableReplicas: 2}}
	if _, err := status(t.Context(), &scope{deployment: md}); err != nil || md.Status.AvailableReplicas != 2 {
		t.Errorf("status = %+v, err = %v; want no change if the MachineSets have not been listed", md.Status, err)
	}
}
