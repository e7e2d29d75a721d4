package rollout

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the conditions of a rollout.
func reports(s *scope) []metav1.Condition {
	const completed, halted = fleetv1.RolloutCompletedCondition, fleetv1.RolloutHaltedCondition
	switch d := s.decision; {
	case s.invalid != "":
		return []metav1.Condition{report.False(completed, fleetv1.RolloutInvalidReason, "%s", s.invalid)}
	case d == nil && s.planning != "":
		return []metav1.Condition{report.False(completed, string(fleetv1.RolloutPlanning), "%s", s.planning)}
	case d == nil:
		return nil
	case d.Phase == fleetv1.RolloutCompleted:
		return []metav1.Condition{report.True(completed, d.Reason, "%s", d.Message), report.None(halted)}
	case d.Halted != "":
		return []metav1.Condition{report.False(completed, d.Reason, "%s", d.Message), report.True(halted, d.Halted, "%s", d.HaltedMessage)}
	default:
		return []metav1.Condition{
			report.False(completed, d.Reason, "%s", d.Message), report.False(halted, fleetv1.RolloutNotHaltedReason, ""),
		}
	}
}
