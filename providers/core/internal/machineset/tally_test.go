package machineset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestTally(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ready := func(since time.Duration) *clusterv1.Machine {
		c := condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition)
		c.LastTransitionTime = metav1.NewTime(now.Add(-since))
		m := &clusterv1.Machine{Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "n"}}}
		m.SetV1Beta1Conditions(clusterv1.Conditions{c})
		return m
	}
	deleting := ready(time.Hour)
	deleting.DeletionTimestamp = &metav1.Time{Time: now}
	nodeless := ready(time.Hour)
	nodeless.Status.NodeRef = clusterv1.MachineNodeReference{}
	sick := ready(time.Hour)
	condition.Set(sick, condition.Unknown(clusterv1.MachineNodeHealthyV1Beta1Condition, "NodeInspectionFailed", ""))
	const negative = clusterv1.NegativePolarityCondition
	gated := func(status metav1.ConditionStatus, polarity clusterv1.ConditionPolarity, since time.Duration) *clusterv1.Machine {
		m := ready(time.Hour)
		m.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Checked", Polarity: polarity}}
		if status != "" {
			m.SetConditions([]metav1.Condition{{Type: "Checked", Status: status, LastTransitionTime: metav1.NewTime(now.Add(-since))}})
		}
		return m
	}
	for name, c := range map[string]struct {
		reason   string
		minReady time.Duration
		machines []*clusterv1.Machine
		want     Tally
	}{
		"None":     {reason: "there are no Machines"},
		"Ready":    {reason: "without minReadySeconds, a ready Machine is available", machines: []*clusterv1.Machine{ready(0)}, want: Tally{Replicas: 1, Ready: 1, Available: 1, Passing: 1}},
		"NotReady": {reason: "a Machine requires a healthy Node", machines: []*clusterv1.Machine{nodeless, sick}, want: Tally{Replicas: 2}},
		"Deleting": {reason: "Machines that are being deleted are not replicas", machines: []*clusterv1.Machine{deleting}, want: Tally{Deleting: 1}},
		"NotYet": {reason: "the next one becomes available in ten seconds", minReady: time.Minute,
			machines: []*clusterv1.Machine{ready(time.Minute), ready(20 * time.Second), ready(50 * time.Second)},
			want:     Tally{Replicas: 3, Ready: 3, Available: 1, Passing: 1, NextAvailable: 10 * time.Second}},
		"Gates": {reason: "Machines are available before their gates are healthy", machines: []*clusterv1.Machine{
			gated(metav1.ConditionTrue, "", 0), gated(metav1.ConditionFalse, "", 0), gated("", "", 0),
			gated(metav1.ConditionTrue, negative, 0), gated(metav1.ConditionFalse, negative, 0), gated(metav1.ConditionUnknown, negative, 0),
		}, want: Tally{Replicas: 6, Ready: 6, Available: 6, Passing: 2}},
		"GatesNotYet": {reason: "minReadySeconds count from when the gates are healthy", minReady: time.Minute, machines: []*clusterv1.Machine{
			gated(metav1.ConditionTrue, "", time.Minute), gated(metav1.ConditionTrue, "", 20*time.Second),
		}, want: Tally{Replicas: 2, Ready: 2, Available: 2, Passing: 1, NextAvailable: 40 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			var got Tally
			for _, m := range c.machines {
				got.Add(m, c.minReady, now)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}
