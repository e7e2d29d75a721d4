package machineset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// machine returns a healthy Machine, changed by change.
func machine(name string, age time.Duration, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(object.Now().Add(-age))},
		Status:     clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: name}},
	}
	nodeHealthy(object.Now().Add(-age))(m)
	for _, f := range change {
		f(m)
	}
	return m
}

func nodeHealthy(since time.Time) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		c := condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition)
		c.LastTransitionTime = metav1.NewTime(since)
		m.SetV1Beta1Conditions(clusterv1.Conditions{c})
	}
}

func nodeUnhealthy(m *clusterv1.Machine) {
	condition.Set(m, condition.False(clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.ConditionSeverityWarning, "Bad", ""))
}

func nodeUnknown(m *clusterv1.Machine) {
	condition.Set(m, condition.Unknown(clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.NodeConditionsFailedV1Beta1Reason, ""))
}

func checkFailed(m *clusterv1.Machine) {
	condition.Set(m, condition.False(clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.ConditionSeverityWarning, "Bad", ""))
}

func deleting(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.NewTime(object.Now())) }

func marked(m *clusterv1.Machine) {
	m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
}

func withoutNode(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }

func TestToDelete(t *testing.T) {
	const day = 24 * time.Hour
	ages := []*clusterv1.Machine{machine("b", 2*day), machine("a", day), machine("c", 3*day)}
	states := []*clusterv1.Machine{
		machine("healthy", 9*day), machine("broken", day, withoutNode), machine("marked", day, marked), machine("deleting", day, deleting),
	}
	cases := map[string]struct {
		reason   string
		machines []*clusterv1.Machine
		order    clusterv1.MachineSetDeletionOrder
		n        int
		want     []string
	}{
		"Random":   {reason: "names decide between Machines of the same priority", machines: ages, order: "Random", n: 2, want: []string{"a", "b"}},
		"Empty":    {reason: "an empty order is Random", machines: ages, n: 1, want: []string{"a"}},
		"Newest":   {reason: "the newest are deleted first", machines: ages, order: "Newest", n: 2, want: []string{"a", "b"}},
		"Oldest":   {reason: "the oldest are deleted first", machines: ages, order: "Oldest", n: 2, want: []string{"c", "b"}},
		"None":     {reason: "there are no Machines to delete", machines: ages, n: 0},
		"Negative": {reason: "a negative number counts as zero", machines: ages, n: -1},
		"TooMany":  {reason: "there are fewer Machines", machines: ages, n: 9, want: []string{"a", "b", "c"}},
		"StatesByRandom": {reason: "marked Machines come before unhealthy ones with Random", machines: states, order: "Random", n: 4,
			want: []string{"deleting", "marked", "broken", "healthy"}},
		"StatesByOldest": {reason: "in other orders, too, and unhealthy ones come before the oldest", machines: states, order: "Oldest", n: 4,
			want: []string{"deleting", "marked", "broken", "healthy"}},
		"Unreachable": {reason: "a Machine whose health is unknown is not unhealthy: after a partition, all are", order: "Oldest", n: 1,
			machines: []*clusterv1.Machine{machine("old", 3*day), machine("young", day, nodeUnknown)}, want: []string{"old"}},
		"HealthCheck": {reason: "a Machine that a health check marked is unhealthy", order: "Oldest", n: 1,
			machines: []*clusterv1.Machine{machine("old", 3*day), machine("young", day, checkFailed)}, want: []string{"young"}},
		"Unhealthy": {reason: "a Machine with a failure or an unhealthy Node is unhealthy", order: "Newest", n: 3,
			machines: []*clusterv1.Machine{
				machine("young", 0, func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.NewTime(object.Now().Add(-time.Hour)) }),
				machine("failed", 9*day, func(m *clusterv1.Machine) {
					m.SetV1Beta1Status(clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: ptr.To("broken"), Conditions: m.GetV1Beta1Conditions()})
				}),
				machine("sick", 9*day, nodeUnhealthy),
			}, want: []string{"failed", "sick", "young"}},
		"NoTime": {reason: "a Machine without creation time counts as new", order: "Oldest", n: 2,
			machines: []*clusterv1.Machine{machine("a", 0, func(m *clusterv1.Machine) { m.CreationTimestamp = metav1.Time{} }), machine("b", day)},
			want:     []string{"b", "a"}},
		"Future": {reason: "a Machine with a creation time in the future counts as new", order: "Oldest", n: 2,
			machines: []*clusterv1.Machine{machine("a", -day), machine("b", day)}, want: []string{"b", "a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			set := &clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Deletion: clusterv1.MachineSetDeletionSpec{Order: tc.order}}}
			for _, m := range toDelete(set, tc.machines, tc.n, object.Now()) {
				got = append(got, m.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPriority(t *testing.T) {
	tenDays := 240 * time.Hour
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		order   clusterv1.MachineSetDeletionOrder
		want    float64
	}{
		"Deleting":       {reason: "the highest priority", machine: machine("m", tenDays, deleting), order: "Newest", want: 100},
		"MarkedRandom":   {reason: "higher than unhealthy with Random, too", machine: machine("m", tenDays, marked), order: "Random", want: 75},
		"MarkedOldest":   {reason: "higher than unhealthy", machine: machine("m", tenDays, marked), order: "Oldest", want: 75},
		"UnhealthyNewer": {reason: "higher than any age", machine: machine("m", tenDays, withoutNode), order: "Newest", want: 50},
		"Random":         {reason: "the same for all healthy Machines", machine: machine("m", tenDays), order: "Random", want: 20},
		"Oldest":         {reason: "50 * (1 - 1/e) after ten days", machine: machine("m", tenDays), order: "Oldest", want: 31.606},
		"Newest":         {reason: "50 / e after ten days", machine: machine("m", tenDays), order: "Newest", want: 18.394},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := priority(tc.machine, tc.order, object.Now()); got < tc.want-0.001 || got > tc.want+0.001 {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
