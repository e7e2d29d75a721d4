package reference_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
)

// TestReported checks which errors a condition reports: those that do not pass by themselves. It never reports that all is well.
func TestReported(t *testing.T) {
	things := schema.GroupResource{Group: "example.com", Resource: "things"}
	for name, c := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"None":      {"there is no error", nil, "True "},
		"Violation": {"the provider breaks the contract", fmt.Errorf("reading: %w", contract.Violated("Thing one has no port")), "False ContractViolated"},
		"Kind":      {"the kind is not installed", &contract.NotInstalledError{Kind: schema.GroupKind{Kind: "Thing"}}, "False KindNotInstalled"},
		"Forbidden": {"a role is missing", fmt.Errorf("reading: %w", apierrors.NewForbidden(things, "one", errors.New("no"))), "False AccessDenied"},
		"Explained": {"the step has a reason of its own", &step.Error{Reason: "Own", Err: contract.Violated("bad")}, "False Own"},
		"Outage":    {"an API server that does not respond passes", apierrors.NewTimeoutError("later", 1), ""},
		"Stale":     {"a stale cache passes", step.Stale("old"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{}
			do := reference.Reported(func(context.Context, struct{}) (step.Result, error) {
				if c.want != "" {
					return step.Done().WithConditions(condition.True(clusterv1.InfrastructureReadyV1Beta1Condition)), c.err
				}
				return step.Done(), c.err
			})
			_, err := steptest.Run(t.Context(), m, struct{}{}, step.Do("do", do).Sets(clusterv1.InfrastructureReadyV1Beta1Condition))
			if !errors.Is(err, c.err) {
				t.Errorf("the error is %v, want %v", err, c.err)
			}
			got := ""
			if stated := condition.Get(m, clusterv1.InfrastructureReadyV1Beta1Condition); stated != nil {
				got = string(stated.Status) + " " + stated.Reason
			}
			if got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}
