package reference

import (
	"fmt"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
)

// Mirror states as condition t what a provider's object says of itself in its Ready condition, or fallback if
// it has none.
func Mirror(on condition.Setter, t clusterv1.ConditionType, from contract.Object, fallback clusterv1.Condition) error {
	conditions, err := from.Conditions()
	if err != nil {
		return err
	}
	condition.Set(on, condition.Mirror(t, read(conditions), fallback))
	return nil
}

// read is conditions that were read, as their holder.
type read clusterv1.Conditions

// GetConditions implements condition.Getter.
func (c read) GetConditions() clusterv1.Conditions { return clusterv1.Conditions(c) }

// CopyFailure takes over a provider's terminal failure. It is never cleared here: whoever mends it clears it.
func CopyFailure[R ~string](from contract.Object, reason **R, message **string) error {
	failure, err := from.Failure()
	if err != nil {
		return err
	}
	if failure.Reason != "" {
		*reason = ptr.To(R(failure.Reason))
	}
	if failure.Message != "" {
		*message = ptr.To(fmt.Sprintf("Failure detected from referenced resource %v with name %q: %s",
			from.GroupVersionKind(), from.GetName(), failure.Message))
	}
	return nil
}
