package condition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestSummarize(t *testing.T) {
	kind := condition.Kind{Ready: []clusterv1.ConditionType{infra, boot, drain}}
	for name, c := range map[string]struct {
		reason string
		kind   condition.Kind
		on     clusterv1.Conditions
		want   *clusterv1.Condition
	}{
		"NonePresent": {
			reason: "with none of the listed conditions there is no Ready",
			kind:   kind,
			on:     clusterv1.Conditions{condition.True(clusterv1.ResizedV1Beta1Condition)},
		},
		"NoReady": {
			reason: "a kind that lists nothing has no Ready",
			on:     clusterv1.Conditions{condition.True(infra)},
		},
		"ErrorFirst": {
			reason: "an error decides over a warning and over what is listed before it",
			kind:   kind,
			on: clusterv1.Conditions{
				condition.False(infra, warning, "Slow", "a"), condition.False(boot, errorSeverity, "Broken", "b"), condition.True(drain),
			},
			want: new(condition.False(ready, errorSeverity, "Broken", "b")),
		},
		"WarningBeforeInfo": {
			reason: "a warning decides over an info",
			kind:   kind,
			on:     clusterv1.Conditions{condition.False(infra, info, "Waiting", "a"), condition.False(boot, warning, "Slow", "b")},
			want:   new(condition.False(ready, warning, "Slow", "b")),
		},
		"FirstListed": {
			reason: "within a group the first of the list decides, not the first of the object",
			kind:   kind,
			on:     clusterv1.Conditions{condition.False(boot, info, "Waiting", "b"), condition.False(infra, info, "Waiting", "a")},
			want:   new(condition.False(ready, info, "Waiting", "a")),
		},
		"InfoBeforeTrue": {
			reason: "a False condition of the lowest severity still beats True",
			kind:   kind,
			on:     clusterv1.Conditions{condition.True(infra), condition.False(boot, info, "Waiting", "b")},
			want:   new(condition.False(ready, info, "Waiting", "b")),
		},
		"FalseWithoutSeverity": {
			reason: "a False condition without severity still makes Ready False",
			kind:   kind,
			on:     clusterv1.Conditions{condition.True(infra), condition.False(boot, "", "Waiting", "b")},
			want:   new(condition.False(ready, "", "Waiting", "b")),
		},
		"TrueBeatsUnknown": {
			reason: "True precedes Unknown, even if that is listed first",
			kind:   kind,
			on:     clusterv1.Conditions{condition.Unknown(infra, "Lost", "a"), condition.True(boot)},
			want:   new(condition.True(ready)),
		},
		"Unknown": {
			reason: "Ready is Unknown if all conditions are",
			kind:   kind,
			on:     clusterv1.Conditions{condition.Unknown(infra, "Lost", "a"), condition.Unknown(boot, "Gone", "b")},
			want:   new(condition.Unknown(ready, "Lost", "a")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			on := machine(c.on...)
			c.kind.Summarize(on)
			if diff := cmp.Diff(c.want, condition.Get(on, ready)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestSummarizeKeepsReadyWhenNothingFeedsIt(t *testing.T) {
	old := since(past, condition.True(ready))
	on := machine(old)
	condition.Kind{Ready: []clusterv1.ConditionType{infra}}.Summarize(on)
	if diff := cmp.Diff(clusterv1.Conditions{old}, on.GetV1Beta1Conditions()); diff != "" {
		t.Errorf("Ready must not change: -want +got:\n%s", diff)
	}
}

func TestStepCounter(t *testing.T) {
	counting := condition.Kind{
		Ready: []clusterv1.ConditionType{infra, boot, drain},
		StepCounter: func(on condition.Getter) ([]clusterv1.ConditionType, bool) {
			return []clusterv1.ConditionType{infra, boot}, !condition.Has(on, drain)
		},
	}
	for name, c := range map[string]struct {
		reason string
		on     clusterv1.Conditions
		want   clusterv1.Condition
	}{
		"Counts": {
			reason: "the message counts the True conditions of the types, present or not; the reason is kept",
			on:     clusterv1.Conditions{condition.False(infra, info, "Waiting", "for a disk")},
			want:   condition.False(ready, info, "Waiting", "0 of 2 completed"),
		},
		"CountsTrue": {
			reason: "a True condition counts",
			on:     clusterv1.Conditions{condition.True(boot), condition.False(infra, info, "Waiting", "for a disk")},
			want:   condition.False(ready, info, "Waiting", "1 of 2 completed"),
		},
		"Done": {
			reason: "a True Ready has no message",
			on:     clusterv1.Conditions{condition.True(boot), condition.True(infra)},
			want:   condition.True(ready),
		},
		"NotCounting": {
			reason: "when the kind does not count for this object, its message is that of the deciding condition",
			on:     clusterv1.Conditions{condition.True(boot), condition.False(drain, warning, "DrainingFailed", "a pod is left")},
			want:   condition.False(ready, warning, "DrainingFailed", "a pod is left"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			on := machine(c.on...)
			counting.Summarize(on)
			if diff := cmp.Diff(&c.want, condition.Get(on, ready)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestMirror(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		source   *clusterv1.Machine
		fallback clusterv1.Condition
		want     clusterv1.Condition
	}{
		"False": {
			reason:   "all fields of the source's Ready are copied, except type and transition time",
			source:   machine(since(past, condition.False(ready, warning, "Slow", "the disk is slow"))),
			fallback: condition.Fallback(true, "Waiting"),
			want:     condition.False(infra, warning, "Slow", "the disk is slow"),
		},
		"Unknown": {
			reason:   "an Unknown Ready is mirrored, too: the fallback is only for sources without Ready",
			source:   machine(condition.Unknown(ready, "Lost", "no answer")),
			fallback: condition.Fallback(true, "Waiting"),
			want:     condition.Unknown(infra, "Lost", "no answer"),
		},
		"FallbackReady": {
			reason:   "a source without conditions that is ready otherwise is True",
			source:   machine(),
			fallback: condition.Fallback(true, "Waiting"),
			want:     condition.True(infra),
		},
		"FallbackNotReady": {
			reason:   "a source without Ready that is not ready is waited for, which is only an info",
			source:   machine(condition.True(boot)),
			fallback: condition.Fallback(false, "Waiting"),
			want:     clusterv1.Condition{Type: infra, Status: corev1.ConditionFalse, Severity: info, Reason: "Waiting"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, condition.Mirror(infra, c.source, c.fallback)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestAggregate(t *testing.T) {
	const aggregate = clusterv1.MachinesReadyV1Beta1Condition
	child := func(name string, r clusterv1.Condition) condition.Child {
		return condition.Child{Ref: "Machine/" + name, Ready: &r}
	}
	for name, c := range map[string]struct {
		reason   string
		children []condition.Child
		want     clusterv1.Condition
		wantOK   bool
	}{
		"NoChildren": {reason: "no children, no condition"},
		"NoneHasReady": {
			reason:   "children without Ready result in no condition",
			children: []condition.Child{{Ref: "Machine/a"}, {Ref: "Machine/b"}},
		},
		"Worst": {
			reason: "the worst child decides and is named; all children count, those without Ready too",
			children: []condition.Child{
				child("a", condition.True(ready)), child("b", condition.False(ready, info, "Waiting", "x")),
				child("c", condition.False(ready, errorSeverity, "Broken", "y")), {Ref: "Machine/d"},
			},
			want:   condition.False(aggregate, errorSeverity, "Broken @ Machine/c", "1 of 4 completed"),
			wantOK: true,
		},
		"NotDoubled": {
			reason:   "a reason that names its source already keeps that one: it is closer to the cause",
			children: []condition.Child{child("a", condition.False(ready, warning, "Slow @ DockerMachine/a", "x"))},
			want:     condition.False(aggregate, warning, "Slow @ DockerMachine/a", "0 of 1 completed"),
			wantOK:   true,
		},
		"NoReason": {
			reason:   "where there is no reason, a source alone would be no reason either",
			children: []condition.Child{child("a", condition.Unknown(ready, "", ""))},
			want:     condition.Unknown(aggregate, "", "0 of 1 completed"),
			wantOK:   true,
		},
		"AllTrue": {
			reason:   "True needs neither message nor source",
			children: []condition.Child{child("a", condition.True(ready)), child("b", condition.True(ready))},
			want:     condition.True(aggregate),
			wantOK:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := condition.Aggregate(aggregate, c.children)
			if diff := cmp.Diff(c.want, got); diff != "" || ok != c.wantOK {
				t.Errorf("%s: ok = %t, want %t; -want +got:\n%s", c.reason, ok, c.wantOK, diff)
			}
		})
	}
}

func TestAggregateLeavesChildrenAlone(t *testing.T) {
	r := condition.False(ready, info, "Waiting", "x")
	condition.Aggregate(infra, []condition.Child{{Ref: "Machine/a", Ready: &r}})
	if diff := cmp.Diff(condition.False(ready, info, "Waiting", "x"), r); diff != "" {
		t.Errorf("the condition of the child is shared with the cache and must not change: -want +got:\n%s", diff)
	}
}
