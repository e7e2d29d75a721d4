package machineset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func labeled(m *clusterv1.Machine) { m.Labels = map[string]string{"tier": "one", "more": "labels"} }

func ready(c clusterv1.Condition) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { condition.Set(m, c) }
}

// counted is a test case of status.
type counted struct {
	reason   string
	replicas int32
	minReady int32
	machines []*clusterv1.Machine
	want     clusterv1.MachineSetStatus
	after    time.Duration
}

// statusOf returns the status of a set whose Machines have no metav1 conditions.
func statusOf(counts Tally, labeled int32, conditions ...clusterv1.Condition) clusterv1.MachineSetStatus {
	set := &clusterv1.MachineSet{}
	set.Status.Replicas = &counts.Replicas
	setCounts(set, replicas.Counts{})
	set.SetV1Beta1Status(clusterv1.MachineSetV1Beta1DeprecatedStatus{
		Conditions: conditions, FullyLabeledReplicas: &labeled, ReadyReplicas: &counts.Ready, AvailableReplicas: &counts.Available,
	})
	return set.Status
}

func TestStatus(t *testing.T) {
	isReady := condition.True(clusterv1.ReadyV1Beta1Condition)
	notReady := condition.False(clusterv1.ReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo, "Waiting", "for it")
	resized := condition.True(clusterv1.ResizedV1Beta1Condition)
	scaling := func(reason, message string) clusterv1.Condition {
		return condition.False(clusterv1.ResizedV1Beta1Condition, clusterv1.ConditionSeverityWarning, reason, "%s", message)
	}
	aggregate := func(c clusterv1.Condition) clusterv1.Condition {
		c.Type = clusterv1.MachinesReadyV1Beta1Condition
		return c
	}
	cases := map[string]counted{
		"Empty": {reason: "no Machines are desired, and there are none", want: statusOf(Tally{}, 0, resized)},
		"AllReady": {
			reason: "ready Machines are available immediately", replicas: 2,
			machines: []*clusterv1.Machine{machine("a", time.Hour, labeled, ready(isReady)), machine("b", time.Hour, labeled, ready(isReady))},
			want:     statusOf(Tally{Replicas: 2, Ready: 2, Available: 2}, 2, aggregate(isReady), resized),
		},
		"NotYet": {
			reason: "with minReadySeconds, the first becomes available in 20 seconds", replicas: 2, minReady: 60,
			machines: []*clusterv1.Machine{machine("a", 40*time.Second), machine("b", 30*time.Second), machine("c", 61*time.Second, deleting)},
			want:     statusOf(Tally{Replicas: 2, Ready: 2}, 0, scaling("ScalingDown", "Scaling down MachineSet to 2 replicas (actual 3)")),
			after:    20 * time.Second,
		},
		"OldEnough": {
			reason: "minReadySeconds have passed", replicas: 1, minReady: 60,
			machines: []*clusterv1.Machine{machine("a", 61*time.Second)},
			want:     statusOf(Tally{Replicas: 1, Ready: 1, Available: 1}, 0, resized),
		},
		"NotReady": {
			reason: "a Machine without healthy Node counts only as replica", replicas: 3,
			machines: []*clusterv1.Machine{
				machine("a", time.Hour, withoutNode, ready(notReady)), machine("b", time.Hour, nodeUnhealthy, ready(isReady)), machine("c", time.Hour, deleting),
			},
			want: statusOf(Tally{Replicas: 2}, 0,
				condition.False(clusterv1.MachinesReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo, "Waiting @ Machine/a", "1 of 2 completed"),
				scaling("ScalingUp", "Scaling up MachineSet to 3 replicas (actual 3)")),
		},
		"Missing": {
			reason: "there are fewer Machines than desired", replicas: 2, machines: []*clusterv1.Machine{machine("a", time.Hour)},
			want: statusOf(Tally{Replicas: 1, Ready: 1, Available: 1}, 0, scaling("ScalingUp", "Scaling up MachineSet to 2 replicas (actual 1)")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.check(t) })
	}
}

func (tc counted) check(t *testing.T) {
	t.Helper()
	set := &clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{
		Replicas: &tc.replicas, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "one"}},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"tier": "one"}}, Spec: clusterv1.MachineSpec{MinReadySeconds: &tc.minReady},
		},
	}}
	c := &Controller{Clients: step.Clients{Clock: clocktesting.NewFakePassiveClock(object.Now())}}
	result, err := c.status(t.Context(), &scope{set: set, machines: tc.machines, listed: true})
	if err != nil || result.After() != tc.after {
		t.Errorf("%s: requeued after %s, err = %v; want %s", tc.reason, result.After(), err, tc.after)
	}
	tc.want.Selector = "tier=one"
	conditions := tc.want.Deprecated.V1Beta1.Conditions
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.Time{}
	}
	condition.Sort(conditions)
	if diff := cmp.Diff(tc.want, set.Status); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
	}
}

func TestStatusBeforeCollect(t *testing.T) {
	set := &clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Replicas: ptr.To(int32(2))}, Status: statusOf(Tally{Replicas: 2, Ready: 2}, 0)}
	want := set.Status.DeepCopy()
	c := &Controller{Clients: step.Clients{Clock: clocktesting.NewFakePassiveClock(object.Now())}}
	if _, err := c.status(t.Context(), &scope{set: set}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, &set.Status); diff != "" {
		t.Errorf("the Machines have not been listed, and the status was changed (-want +got):\n%s", diff)
	}
}

// The last Machine of a MachineSet was not ready when it was deleted.
func TestScaledToZero(t *testing.T) {
	set := &clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Replicas: ptr.To[int32](0)}}
	condition.Set(set, condition.False(clusterv1.MachinesReadyV1Beta1Condition, clusterv1.ConditionSeverityError, "NodeNotFound", "0 of 1 completed"))
	c := &Controller{Clients: step.Clients{Clock: clocktesting.NewFakePassiveClock(object.Now())}}
	if _, err := c.status(t.Context(), &scope{set: set, listed: true}); err != nil {
		t.Fatal(err)
	}
	want := clusterv1.Conditions{condition.True(clusterv1.ResizedV1Beta1Condition)}
	if diff := cmp.Diff(want, set.GetV1Beta1Conditions()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestResized(t *testing.T) {
	resized := condition.True(clusterv1.ResizedV1Beta1Condition)
	cases := map[string]struct {
		reason                 string
		desired, actual, ready int32
		before                 *clusterv1.Condition
		want                   clusterv1.Condition
	}{
		"New":       {"the reconcile that created the Machines failed before this step", 2, 2, 0, nil, scalingUp(2, 2)},
		"ScalingUp": {"the condition is kept until all Machines are ready", 3, 3, 1, ptr.To(scalingUp(3, 1)), scalingUp(3, 1)},
		"Complete":  {"all Machines are ready", 3, 3, 3, ptr.To(scalingUp(3, 1)), resized},
		"Unhealthy": {"a Machine that fails later does not change the condition", 3, 3, 2, &resized, resized},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := &clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Replicas: &tc.desired}}
			if tc.before != nil {
				condition.Set(set, *tc.before)
			}
			setResized(set, int(tc.actual), int(tc.ready))
			if diff := cmp.Diff(&tc.want, condition.Get(set, clusterv1.ResizedV1Beta1Condition)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
