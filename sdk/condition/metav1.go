package condition

import (
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The limits of metav1.Condition.
const (
	maxReason  = 1024
	maxMessage = 32768
)

// validReason is what the API server accepts as the reason of a metav1.Condition.
var validReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// Metav1 returns conditions as contract v1beta2 has them in status.conditions, for objects of a generation. Kinds that support it call it
// in SetConditions, and return status.deprecated.v1beta1.conditions in GetConditions: severities are there only, and without them every
// reconcile would find a difference.
//
// A condition without a reason gets its type as the reason, or NoReasonReported if that is no valid reason.
func Metav1(conditions clusterv1.Conditions, generation int64) []metav1.Condition {
	if conditions == nil {
		return nil
	}
	out := make([]metav1.Condition, 0, len(conditions))
	for _, c := range conditions {
		out = append(out, metav1.Condition{
			Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), ObservedGeneration: generation,
			LastTransitionTime: c.LastTransitionTime, Reason: reasonOf(c), Message: Truncate(c.Message, maxMessage),
		})
	}
	return out
}

func reasonOf(c clusterv1.Condition) string {
	for _, reason := range []string{c.Reason, string(c.Type)} {
		if len(reason) <= maxReason && validReason.MatchString(reason) {
			return reason
		}
	}
	return clusterv1.NoReasonReportedReason
}
