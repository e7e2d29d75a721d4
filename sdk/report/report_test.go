package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type object struct{ conditions []metav1.Condition }

func (o *object) GetConditions() []metav1.Condition  { return o.conditions }
func (o *object) SetConditions(c []metav1.Condition) { o.conditions = c }

func TestSet(t *testing.T) {
	then, now := time.Unix(1000, 0).UTC(), time.Unix(2000, 500).UTC()
	at := func(c metav1.Condition, generation int64, when time.Time) metav1.Condition {
		c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(when)
		return c
	}
	before := []metav1.Condition{
		at(False("Ready", "NotReady", "why"), 1, then),
		at(True("Removed", "Removed", ""), 1, then),
		at(False("Foreign", "Other", ""), 1, then),
	}
	for _, tt := range []struct {
		reason string
		set    []metav1.Condition
		want   []metav1.Condition
	}{
		{"another message is no transition", []metav1.Condition{False("Ready", "NotReady", "something else")},
			[]metav1.Condition{at(False("Ready", "NotReady", "something else"), 2, then), before[2], before[1]}},
		{"another status is a transition, in whole seconds", []metav1.Condition{True("Ready", "Ready", "")},
			[]metav1.Condition{at(True("Ready", "Ready", ""), 2, time.Unix(2000, 0).UTC()), before[2], before[1]}},
		{"None removes a condition, also one that is absent", []metav1.Condition{None("Removed"), None("Absent")},
			[]metav1.Condition{before[0], before[2]}},
		{"conditions are in the stored order", []metav1.Condition{If("Paused", false, "Paused", "NotPaused"), True("Available", "Available", "")},
			[]metav1.Condition{at(True("Available", "Available", ""), 2, time.Unix(2000, 0).UTC()), before[0], before[2], before[1],
				at(False("Paused", "NotPaused", ""), 2, time.Unix(2000, 0).UTC())}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := &object{conditions: append([]metav1.Condition(nil), before...)}
			Set(o, 2, now, tt.set...)
			if diff := cmp.Diff(tt.want, o.conditions); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	before := []metav1.Condition{True("Ready", "Ready", ""), True("Old", "Old", ""), True("Kept", "Kept", "")}
	after := []metav1.Condition{False("Ready", "NotReady", ""), True("Kept", "Kept", ""), True("New", "New", "")}
	live := []metav1.Condition{True("Ready", "Ready", "changed meanwhile"), True("Old", "Old", ""), False("Kept", "Changed", ""), True("Foreign", "F", "")}
	want := []metav1.Condition{False("Ready", "NotReady", ""), True("Foreign", "F", ""), False("Kept", "Changed", ""), True("New", "New", "")}
	if diff := cmp.Diff(want, Merge(before, after, live)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
