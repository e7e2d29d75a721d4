package restore

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// longMessage is how long messages of conditions can be that have what users should know.
const longMessage = 4096

// reports returns the condition of a restore.
func reports(s *scope) []metav1.Condition {
	const t = fleetv1.OperationCompletedCondition
	r, failed := s.restore, ""
	if s.failed != nil {
		failed = text(s.failed.Error())
	}
	brief := func(text string) string { return condition.Truncate(prefix(s)+text, longMessage) }
	before := report.Get(r, t)
	switch {
	case s.outdated && before != nil:
		return []metav1.Condition{*before}
	case r.Status.Phase == fleetv1.OperationPhaseCompleted:
		return []metav1.Condition{report.True(t, fleetv1.OperationCompletedReason, "%s", brief(strings.Join(r.Status.Warnings, "\n")))}
	case s.refused != "" && s.begun(fleetv1.RestoreStepFence):
		return []metav1.Condition{report.False(t, fleetv1.OperationFailedReason, "%s", brief(s.refused))}
	case s.refused != "":
		return []metav1.Condition{report.False(t, fleetv1.OperationRefusedReason, "%s", brief(s.refused))}
	case r.Status.Phase == fleetv1.OperationPhaseFailed && before != nil:
		return []metav1.Condition{*before}
	case r.Status.Phase == fleetv1.OperationPhaseFailed:
		return []metav1.Condition{report.False(t, fleetv1.OperationFailedReason, "")}
	case s.unconfirmed != "":
		return []metav1.Condition{report.False(t, fleetv1.OperationNotConfirmedReason, "%s", brief(s.unconfirmed))}
	case failed != "":
		return []metav1.Condition{report.False(t, fleetv1.OperationWaitingReason, "%s", brief(stepOf(s)+failed))}
	case s.waiting != "":
		return []metav1.Condition{report.False(t, fleetv1.OperationWaitingReason, "%s", brief(stepOf(s)+"waiting for "+s.waiting))}
	}
	return []metav1.Condition{report.False(t, fleetv1.OperationRunningReason, "%s", brief(strings.TrimSuffix(stepOf(s), ": ")))}
}

// stepOf returns the present step, as the beginning of a message.
func stepOf(s *scope) string {
	for _, m := range s.restore.Status.Steps {
		if m.CompletionTime == nil {
			return cmp.Or(m.Name, "Begin") + ": "
		}
	}
	return ""
}

// prefix returns what precedes the messages of a restore that is being deleted.
func prefix(s *scope) string {
	if s.restore.DeletionTimestamp.IsZero() || !s.mustGoOn() {
		return ""
	}
	return fmt.Sprintf("it is deleted once the restore has completed, because control plane Machines were already deleted. To leave the "+
		"control plane as it is now, set annotation %s. ", fleetv1.AbandonAnnotation)
}
