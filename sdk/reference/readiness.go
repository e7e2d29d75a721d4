package reference

import (
	"fmt"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Readiness returns the result of a step that waits for a provider object to be ready, and mirrors its Ready condition as condition t. If
// the object has no Ready condition, t has the given reason.
func Readiness(from contract.Object, ready bool, t clusterv1.ConditionType, reason string) (step.Result, error) {
	conditions, err := from.Conditions()
	if err != nil {
		return step.Done(), err
	}
	what := from.GetKind() + " " + from.GetName() + " to be ready"
	fallback := condition.Fallback(ready, reason)
	if !ready {
		fallback.Message = "Waiting for " + what
	}
	stated := condition.Mirror(t, read(conditions), fallback)
	if !ready {
		return step.Wait(what).WithConditions(stated), nil
	}
	return step.Done().WithConditions(stated), nil
}

// read implements condition.Getter for a list of conditions.
type read clusterv1.Conditions

// GetConditions implements condition.Getter.
func (c read) GetV1Beta1Conditions() clusterv1.Conditions { return clusterv1.Conditions(c) }

// CopyFailure copies a provider's terminal failure. It never clears one: that is up to the user who fixed it.
func CopyFailure[R ~string](from contract.Object, reason **R, message **string) error {
	failed, text, err := from.Failure()
	if err != nil {
		return err
	}
	if failed != "" {
		*reason = ptr.To(R(failed))
	}
	if text != "" {
		*message = ptr.To(fmt.Sprintf("Failure detected from referenced resource %v with name %q: %s",
			from.GroupVersionKind(), from.GetName(), text))
	}
	return nil
}
