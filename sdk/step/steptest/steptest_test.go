package steptest_test

import (
	"context"
	"errors"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
)

func TestRun(t *testing.T) {
	failed := errors.New("no quota")
	for _, tc := range []struct {
		reason string
		result step.Result
		err    error
		want   string
	}{
		{"a step that is done", step.Done(), nil, "True"},
		{"a checkpoint, which writes nothing", step.Checkpoint(), nil, "True"},
		{"a step that waits", step.Wait("a Node").Because("NoNode"), nil, "False NoNode"},
		{"a step that failed", step.Done(), &step.Error{Reason: "Failed", Err: failed}, "False Failed"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := &clusterv1.Machine{}
			one := step.Do("node", func(context.Context, *clusterv1.Machine) (step.Result, error) { return tc.result, tc.err })
			result, err := steptest.Run(t.Context(), m, m, one.Sets(clusterv1.MachineNodeHealthyV1Beta1Condition))
			if !errors.Is(err, tc.err) || result.Waiting() != tc.result.Waiting() {
				t.Errorf("result %+v, error %v", result, err)
			}
			c := condition.Get(m, clusterv1.MachineNodeHealthyV1Beta1Condition)
			if c == nil {
				t.Fatal("the condition is not set")
			}
			got := string(c.Status)
			if c.Reason != "" {
				got += " " + c.Reason
			}
			if got != tc.want {
				t.Errorf("condition %s, want %s", got, tc.want)
			}
		})
	}
}
