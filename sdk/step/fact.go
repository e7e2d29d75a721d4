package step

import (
	"cmp"
	"errors"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// fact is what a result reports in the step's condition.
type fact struct {
	reason   string
	severity clusterv1.ConditionSeverity
	stated   []clusterv1.Condition
	silent   bool
}

// Because makes the step's condition False, with this reason and the message "Waiting for ...". The severity is Info.
func (r Result) Because(reason string) Result {
	r.fact.reason = reason
	return r
}

// Severity changes the severity of that condition.
func (r Result) Severity(s clusterv1.ConditionSeverity) Result {
	r.fact.severity = s
	return r
}

// WithConditions sets these conditions in place of the step's condition.
func (r Result) WithConditions(conditions ...clusterv1.Condition) Result {
	r.fact.stated = append(slices.Clone(r.fact.stated), conditions...)
	return r
}

// KeepCondition leaves the step's condition unchanged.
func (r Result) KeepCondition() Result {
	r.fact.silent = true
	return r
}

// Error is an error that sets the step's condition. Its text becomes the message, so it must not contain secrets.
type Error struct {
	// Reason is the reason of the condition.
	Reason string
	// Severity is the severity of the condition. Empty: Error.
	Severity clusterv1.ConditionSeverity
	// Err is the cause.
	Err error
}

// Error implements error.
func (f *Error) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Error) Unwrap() error { return f.Err }

// state sets the condition of a step. Stale errors set none: the reconcile is retried.
func (f fact) state(on reconciling, t clusterv1.ConditionType, r Result, err error) {
	var failed *Error
	switch {
	case len(f.stated) > 0:
		for _, c := range f.stated {
			on.state(c)
		}
	case t == "" || f.silent || err != nil && IsStale(err):
	case errors.As(err, &failed):
		on.state(condition.False(t, cmp.Or(failed.Severity, clusterv1.ConditionSeverityError), failed.Reason, "%v", failed))
	case err != nil:
	case r.consequence == awaiting && f.reason != "":
		on.state(condition.False(t, cmp.Or(f.severity, clusterv1.ConditionSeverityInfo), f.reason, "Waiting for %s", r.what))
	case r.consequence == done || r.consequence == checkpoint:
		on.state(condition.True(t))
	}
}
