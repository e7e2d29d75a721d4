package backup

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the conditions of a backup.
func reports(s *scope) []metav1.Condition {
	return []metav1.Condition{completed(s), verified(s)}
}

func completed(s *scope) metav1.Condition {
	const t = fleetv1.BackupCompletedCondition
	b, failed := s.backup, ""
	if s.failed != nil {
		failed = condition.Brief(s.failed.Error())
	}
	switch {
	case !b.DeletionTimestamp.IsZero():
		return report.False(t, fleetv1.BackupDeletionReason, "%s", failed)
	case b.Status.Phase == fleetv1.BackupPhaseFailed && s.failed == nil:
		return *report.Get(b, t)
	case b.Status.Phase == fleetv1.BackupPhaseFailed:
		return report.False(t, fleetv1.BackupFailedReason, "%s", failed)
	case b.Status.Phase == fleetv1.BackupPhaseCompleted:
		return report.True(t, fleetv1.BackupCompletedReason, "")
	}
	return report.False(t, fleetv1.BackupPendingReason, "%s", failed)
}

// lastFailure returns why the previous attempt failed.
func lastFailure(b *fleetv1.EtcdBackup) string {
	last := report.Get(b, fleetv1.BackupCompletedCondition)
	switch {
	case last != nil && last.Reason == fleetv1.BackupRunningReason:
		return "the manager ended while the backup was made: " + last.Message
	case last != nil && last.Message != "":
		return last.Message
	}
	return "it was not made within its time, spec.timeoutSeconds"
}

func verified(s *scope) metav1.Condition {
	const t = fleetv1.BackupVerifiedCondition
	b := s.backup
	switch {
	case b.Status.Phase != fleetv1.BackupPhaseCompleted && b.Status.Phase != fleetv1.BackupPhaseFailed:
		return report.None(t)
	case s.unverified != nil:
		return report.False(t, reasonOf(s.unverified), "%s", condition.Brief(s.unverified.Error()))
	case b.Status.Verified != nil:
		return report.True(t, fleetv1.BackupVerifiedReason, "")
	}
	if before := report.Get(b, t); before != nil {
		return *before
	}
	return report.None(t)
}
