package reference

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Reasons of conditions about references that cannot be followed until their provider or a user corrects something.
const (
	// ReferenceInvalidReason means that the referring object must not own the object.
	ReferenceInvalidReason = "ReferenceInvalid"
	// ContractViolatedReason means that the object breaks the contract.
	ContractViolatedReason = "ContractViolated"
	// KindNotInstalledReason means that the kind has no CustomResourceDefinition.
	KindNotInstalledReason = "KindNotInstalled"
	// AccessDeniedReason means that the manager lacks a permission, or that an admission webhook denied a request.
	AccessDeniedReason = "AccessDenied"
)

// Reported returns a step that follows a reference as do does, and whose condition also reports errors that do not pass by themselves.
// After such an error, no condition of do's result counts: the object is not as ready as it reports.
func Reported[S any](do func(context.Context, S) (step.Result, error)) func(context.Context, S) (step.Result, error) {
	return func(ctx context.Context, s S) (step.Result, error) {
		result, err := do(ctx, s)
		switch explained := explain(err); {
		case explained == nil:
			return result, err
		case errors.As(err, &explained):
			return step.Done(), err
		default:
			return step.Done(), explained
		}
	}
}

// explain returns an error with the reason of the condition that reports it; nil for errors that pass by themselves.
func explain(err error) *step.Error {
	var (
		explained *step.Error
		violation *contract.ViolationError
		missing   *contract.NotInstalledError
	)
	switch {
	case err == nil || step.IsStale(err):
		return nil
	case errors.As(err, &explained):
		return explained
	case errors.As(err, &violation):
		return &step.Error{Reason: ContractViolatedReason, Err: err}
	case errors.As(err, &missing):
		return &step.Error{Reason: KindNotInstalledReason, Err: err}
	case apierrors.IsForbidden(err):
		return &step.Error{Reason: AccessDeniedReason, Err: err}
	}
	return nil
}

// failed returns the result of a deletion that failed: condition t reports errors that do not pass by themselves.
func failed(t clusterv1.ConditionType, err error) step.Result {
	explained := explain(err)
	if explained == nil {
		return step.Done()
	}
	return step.Done().WithConditions(condition.False(t, clusterv1.ConditionSeverityError, explained.Reason, "%v", explained))
}
