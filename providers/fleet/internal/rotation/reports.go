package rotation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the condition of a rotation.
func reports(s *scope) []metav1.Condition {
	const t = fleetv1.OperationCompletedCondition
	switch {
	case s.rotation.Status.Phase == fleetv1.OperationPhaseCompleted:
		return []metav1.Condition{report.True(t, fleetv1.OperationCompletedReason, "")}
	case s.reason != "":
		return []metav1.Condition{report.False(t, s.reason, "%s", s.message)}
	}
	if before := report.Get(s.rotation, t); before != nil {
		return []metav1.Condition{*before}
	}
	return []metav1.Condition{report.False(t, fleetv1.OperationWaitingReason, "")}
}
