package step

import (
	"cmp"
	"errors"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step/internal/current"
)

// statement is what a result reports in the step's condition.
type statement struct {
	reason     string
	severity   clusterv1.ConditionSeverity
	conditions []clusterv1.Condition
	keep       bool
}

// Because makes the step's condition False, with this reason and the message "Waiting for ...". The severity is Info.
func (r Result) Because(reason string) Result {
	r.statement.reason = reason
	return r
}

// Severity changes the severity of that condition.
func (r Result) Severity(s clusterv1.ConditionSeverity) Result {
	r.statement.severity = s
	return r
}

// WithConditions sets these conditions in place of the step's condition.
func (r Result) WithConditions(conditions ...clusterv1.Condition) Result {
	r.statement.conditions = append(slices.Clone(r.statement.conditions), conditions...)
	return r
}

// KeepCondition leaves the step's condition unchanged.
func (r Result) KeepCondition() Result {
	r.statement.keep = true
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

// setConditions sets the condition of a step. Stale errors set none: the reconcile is retried.
func (p statement) setConditions(on current.Reconcile, t clusterv1.ConditionType, r Result, err error) {
	var failed *Error
	switch {
	case len(p.conditions) > 0:
		for _, c := range p.conditions {
			on.SetCondition(c)
		}
	case t == "" || p.keep || err != nil && IsStale(err):
	case errors.As(err, &failed):
		on.SetCondition(condition.False(t, cmp.Or(failed.Severity, clusterv1.ConditionSeverityError), failed.Reason, "%v", failed))
	case err != nil:
	case r.consequence == awaiting && p.reason != "":
		on.SetCondition(condition.False(t, cmp.Or(p.severity, clusterv1.ConditionSeverityInfo), p.reason, "Waiting for %s", r.what))
	case r.consequence == done || r.consequence == checkpoint:
		on.SetCondition(condition.True(t))
	}
}
