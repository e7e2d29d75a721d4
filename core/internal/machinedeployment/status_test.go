package machinedeployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/machineset/tally"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// counted is a MachineSet and its Machines. Its status tells nothing: that of a MachineSet may be of another time.
type counted struct {
	*clusterv1.MachineSet
	tally tally.Tally
}

// counting is a set with this spec, and Machines, of which some are ready and available.
func counting(name string, spec, replicas, ready, available int32) *counted {
	set := machineSet(name, 1, spec)
	set.UID = types.UID(name)
	return &counted{set, tally.Tally{Replicas: replicas, Ready: ready, Available: available}}
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
		"Nothing": {reason: "a set is yet to come", replicas: 1,
			want: clusterv1.MachineDeploymentStatus{Phase: "ScalingUp", Conditions: clusterv1.Conditions{waiting("At least 1 replicas must be available, 0 are"), noSet}}},
		"Zero": {reason: "none is as many as there are", current: counting("b", 0, 0, 0, 0),
			want: clusterv1.MachineDeploymentStatus{Phase: "Running", Conditions: clusterv1.Conditions{available, noSet}}},
		"Starting": {reason: "no Machine is ready yet", replicas: 2, current: counting("b", 2, 2, 0, 0),
			want: clusterv1.MachineDeploymentStatus{Phase: "ScalingUp", Replicas: 2, UpdatedReplicas: 2, UnavailableReplicas: 2,
				Conditions: clusterv1.Conditions{waiting("At least 2 replicas must be available, 0 are"), noSet}}},
		"Running": {reason: "all are; conditions of the set are shown", replicas: 2, current: isReady,
			want: clusterv1.MachineDeploymentStatus{Phase: "Running", Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
				Conditions: clusterv1.Conditions{available, condition.False(clusterv1.MachineSetReadyCondition, clusterv1.ConditionSeverityError, "Some", "message")}}},
		"Rolling": {reason: "one may be missing", replicas: 3, unavailable: 1, current: counting("b", 2, 2, 1, 1), old: []*counted{counting("a", 1, 1, 1, 1)},
			want: clusterv1.MachineDeploymentStatus{Phase: "ScalingUp", Replicas: 3, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, UnavailableReplicas: 1,
				Conditions: clusterv1.Conditions{available, noSet}}},
		"Down": {reason: "there are more than the sets are to have", replicas: 1, current: counting("b", 1, 3, 3, 3),
			want: clusterv1.MachineDeploymentStatus{Phase: "ScalingDown", Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
				Conditions: clusterv1.Conditions{available, noSet}}},
		"Surplus": {reason: "no phase fits more ready Machines than are wanted while old ones go one by one", replicas: 2,
			current: counting("b", 2, 2, 2, 2), old: []*counted{counting("a", 1, 1, 1, 1)},
			want: clusterv1.MachineDeploymentStatus{Replicas: 3, UpdatedReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 3,
				Conditions: clusterv1.Conditions{available, noSet}}},
		"Failed": {reason: "a failure tops all", replicas: 2, current: failed,
			want: clusterv1.MachineDeploymentStatus{Phase: "Failed", Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
				Conditions: clusterv1.Conditions{available, noSet}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			md := &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{
				Replicas: &tc.replicas, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			}, Status: clusterv1.MachineDeploymentStatus{ObservedGeneration: 7, Replicas: 99, Phase: "Unknown"}}
			s := &scope{deployment: md, known: true, unavailable: tc.unavailable, tallies: map[types.UID]*tally.Tally{}}
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
			condition.Sort(tc.want.Conditions)
			if diff := cmp.Diff(tc.want, md.Status); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatusOfWhatIsNotKnown(t *testing.T) {
	md := &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{Replicas: ptr.To(int32(2))}, Status: clusterv1.MachineDeploymentStatus{AvailableReplicas: 2}}
	if _, err := status(t.Context(), &scope{deployment: md}); err != nil || md.Status.AvailableReplicas != 2 {
		t.Errorf("a reconcile that failed before it saw the MachineSets does not count them: %+v, %v", md.Status, err)
	}
}
