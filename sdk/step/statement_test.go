package step

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// TestFacts: one statement of a step is its condition too.
func TestFacts(t *testing.T) {
	const kind = clusterv1.BootstrapReadyV1Beta1Condition
	failed := &Error{Reason: "Broken", Err: errors.New("no such template")}
	stale := &Error{Reason: "Broken", Err: apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("old"))}
	was := condition.False(kind, clusterv1.ConditionSeverityWarning, "Was", "")
	for name, c := range map[string]struct {
		reason string
		result Result
		err    error
		want   clusterv1.Condition
	}{
		"Done":       {"the step got there", Done(), nil, condition.True(kind)},
		"Checkpoint": {"a checkpoint is done", Checkpoint(), nil, condition.True(kind)},
		"Wait": {"what is waited for is in the message", Wait("Secret s to exist").Because("WaitingForSecret"), nil,
			condition.False(kind, clusterv1.ConditionSeverityInfo, "WaitingForSecret", "Waiting for Secret s to exist")},
		"Severity": {"some waits are worse than others", Wait("x").Because("W").Severity(clusterv1.ConditionSeverityWarning), nil,
			condition.False(kind, clusterv1.ConditionSeverityWarning, "W", "Waiting for x")},
		"WaitWithoutReason": {"a wait that gives no reason leaves the condition alone", Wait("x"), nil, was},
		"Stopped":           {"so does the end of the list", Stop(), nil, was},
		"Silent":            {"so does a step that keeps the condition", Done().KeepCondition(), nil, was},
		"Error":             {"and an error that is likely to go away by itself", Done(), errors.New("timeout"), was},
		"Failed":            {"an error with a reason is stated", Done(), failed, condition.False(kind, clusterv1.ConditionSeverityError, "Broken", "no such template")},
		"Wrapped":           {"also when it is one of several", Done(), errors.Join(failed), condition.False(kind, clusterv1.ConditionSeverityError, "Broken", "no such template")},
		"Stale":             {"a conflict is not about the object", Done(), stale, was},
		"Stating":           {"a step can set another condition", Wait("x").Because("W").WithConditions(condition.Unknown(kind, "Mirrored", "")), nil, condition.Unknown(kind, "Mirrored", "")},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine()
			condition.Set(m, was)
			commit := newCommit(Clients{Clock: testclock.NewFakePassiveClock(now)}, func() *clusterv1.Machine { return &clusterv1.Machine{} }, m, nil)
			one := Do("one", func(context.Context, int) (Result, error) { return c.result, c.err }).Sets(kind)
			_, _ = Run(commit.into(t.Context()), 0, one)
			if diff := cmp.Diff(&c.want, condition.Get(m, kind)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestTransitions: a change of what an object waits for is logged and counted once, however often it is reconciled.
func TestTransitions(t *testing.T) {
	var result Result
	var err error
	w := newWorld(t, func(ctx context.Context, m *clusterv1.Machine) (Result, error) {
		return Run(ctx, m, All(
			Do("bootstrap", func(context.Context, *clusterv1.Machine) (Result, error) { return result, err }),
			Do("other", func(context.Context, *clusterv1.Machine) (Result, error) { return Done(), nil }),
		))
	}, machine())
	registry := prometheus.NewRegistry()
	w.runner.metrics = newMetrics(registry)
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("old"))
	for _, c := range []struct {
		reason string
		result Result
		err    error
		want   string
	}{
		{"a step that is done immediately is not logged", Done(), nil, ""},
		{"it begins to wait", Wait("a Secret"), nil, `"Step is waiting" "step"="bootstrap" "for"="a Secret"`},
		{"it still waits", Wait("a Secret"), nil, ""},
		{"a conflict is no news", Done(), conflict, ""},
		{"it continues", Done(), nil, `"Step is done" "step"="bootstrap"`},
		{"controller-runtime logs errors", Done(), errors.New("broken"), ""},
		{"the end of an error is news", Done(), nil, `"Step is done" "step"="bootstrap"`},
	} {
		result, err, logged = c.result, c.err, nil
		ctx := logr.NewContext(t.Context(), log)
		_, _ = w.runner.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(machine())})
		if got := strings.Join(logged, "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: logged %q, want %q", c.reason, got, c.want)
		}
	}
	const want = `
# HELP capi_step_transitions_total Changes of the outcome of a step for an object, by the new outcome.
# TYPE capi_step_transitions_total counter
capi_step_transitions_total{controller="machine",outcome="done",step="bootstrap"} 2
capi_step_transitions_total{controller="machine",outcome="failed",step="bootstrap"} 1
capi_step_transitions_total{controller="machine",outcome="waiting",step="bootstrap"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "capi_step_transitions_total"); err != nil {
		t.Error(err)
	}
	if len(w.runner.transitions.known) != 0 {
		t.Errorf("no step waits, but transitions remembers %v", w.runner.transitions.known)
	}
}
