package remediation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/machines"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Remediator replaces unhealthy Machines.
type Remediator struct{ Manager *machines.Manager }

// Remediate deletes an unhealthy Machine, if there is one and all checks pass.
func (r Remediator) Remediate(ctx context.Context, state membership.State) (step.Result, error) {
	if err := r.clearRecovered(ctx, state.ControlPlane); err != nil {
		return step.Done(), err
	}
	if err := r.finish(ctx, state.ControlPlane); err != nil {
		return step.Done(), err
	}
	inProgress, err := inProgress(state.KCP)
	if err != nil {
		return step.Done(), err
	}
	all := candidates(state.ControlPlane, inProgress)
	if len(all) == 0 {
		return step.Done(), nil
	}
	now := r.Manager.Clock.Now()
	m, blocked := choose(ctx, state, all, inProgress, now)
	if m == nil {
		return r.report(ctx, all[0], blocked)
	}
	if stale, err := r.Manager.Confirm().Decision(ctx, state.ControlPlane); stale != "" || err != nil {
		return stale.Wait(), err
	}
	record := inProgress
	if record == nil {
		record = retryOf(state.KCP, m, now).record
	}
	if err := begin(state.KCP, record); err != nil {
		return step.Done(), err
	}
	return step.Run(ctx, state,
		step.Do("record", func(context.Context, membership.State) (step.Result, error) { return step.Checkpoint(), nil }),
		step.Do("delete", func(ctx context.Context, state membership.State) (step.Result, error) {
			return r.delete(ctx, state, m, record)
		}))
}

// delete deletes the Machine. What prevents that is reported in its condition.
func (r Remediator) delete(
	ctx context.Context, state membership.State, m *snapshot.Machine, record *record,
) (step.Result, error) {
	if blocked := unsafe(ctx, state, m); blocked != nil {
		return r.report(ctx, m, *blocked)
	}
	if err := r.Manager.Delete(ctx, state.ControlPlane, m); err != nil {
		if step.IsStale(err) {
			return step.Done(), err
		}
		failed := status{
			reason: clusterv1.RemediationFailedV1Beta1Reason, severity: clusterv1.ConditionSeverityError, message: "The Machine cannot be deleted",
		}
		_, saveErr := r.report(ctx, m, failed)
		return step.Done(), errors.Join(err, saveErr)
	}
	_, err := r.report(ctx, m, status{reason: clusterv1.RemediationInProgressV1Beta1Reason, severity: clusterv1.ConditionSeverityWarning})
	return step.Wait(fmt.Sprintf("Machine %s to be deleted, which is being remediated (retry %d)", m.Name, record.RetryCount)), err
}

// status is the condition of a Machine about its remediation.
type status struct {
	reason   string
	severity clusterv1.ConditionSeverity
	message  string
	// after is when the remediation is retried without an event; zero means never.
	after time.Duration
	// cannot is true if time alone does not let the Machine be remediated. Only v1beta2 distinguishes that.
	cannot bool
}

// waiting is the status of a Machine whose remediation has to wait.
func waiting(message string, after time.Duration, cannot bool) status {
	return status{clusterv1.WaitingForRemediationV1Beta1Reason, clusterv1.ConditionSeverityWarning, message, after, cannot}
}

// report sets the condition of the Machine, and lets the steps that follow continue.
func (r Remediator) report(ctx context.Context, m *snapshot.Machine, s status) (step.Result, error) {
	remediated := condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, s.severity, s.reason, "%s", s.message)
	err := r.Manager.SetReports(ctx, m.Machine, []clusterv1.Condition{remediated},
		report.False(clusterv1.MachineOwnerRemediatedCondition, s.reported(), "%s", s.message))
	if err != nil || s.after == 0 {
		return step.Done(), err
	}
	return step.Again(s.after), nil
}

// reported returns the reason of v1beta2.
func (s status) reported() string {
	switch {
	case s.reason == clusterv1.RemediationInProgressV1Beta1Reason:
		return clusterv1.MachineOwnerRemediatedMachineDeletingReason
	case s.reason == clusterv1.WaitingForRemediationV1Beta1Reason && !s.cannot:
		return clusterv1.MachineOwnerRemediatedRemediationDeferredReason
	}
	return clusterv1.MachineOwnerRemediatedCannotBeRemediatedReason
}

// clearRecovered removes the condition of Machines that are healthy again.
func (r Remediator) clearRecovered(ctx context.Context, cp *snapshot.ControlPlane) error {
	for _, m := range cp.Machines {
		if condition.IsFalse(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition) &&
			condition.IsTrue(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition) {
			before := step.AsRead(m.Machine)
			condition.Delete(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
			report.Set(m.Machine, m.Generation, r.Manager.Clock.Now(), report.None(clusterv1.MachineOwnerRemediatedCondition))
			if err := r.Manager.SaveConditions(ctx, m.Machine, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish removes the record of the remediation in progress when it is finished.
func (r Remediator) finish(ctx context.Context, cp *snapshot.ControlPlane) error {
	current, err := inProgress(cp.KCP)
	if err != nil || current == nil || !finished(cp, current) {
		return err
	}
	// Another leader may have recorded the next remediation, and that record must not be removed because of a stale cache.
	stale, err := r.Manager.Confirm().ControlPlane(ctx, cp)
	if stale != "" || err != nil {
		return err
	}
	delete(cp.KCP.Annotations, controlplanev1.RemediationInProgressAnnotation)
	return nil
}

// finished reports whether the replacement exists or is no longer needed.
func finished(cp *snapshot.ControlPlane, current *record) bool {
	raw := cp.KCP.Annotations[controlplanev1.RemediationInProgressAnnotation]
	if slices.ContainsFunc(cp.Machines,
		func(m *snapshot.Machine) bool { return m.Annotations[controlplanev1.RemediationForAnnotation] == raw }) {
		return true
	}
	m := cp.Named(current.Machine)
	if m == nil {
		return len(cp.Machines) >= cp.Desired()
	}
	// The Machine has recovered before it was deleted, and its etcd member has not been removed.
	return !m.Deleting() && !unhealthy(m) && condition.IsTrue(m, controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition)
}

// unhealthy reports whether a MachineHealthCheck requests the remediation of the Machine.
func unhealthy(m *snapshot.Machine) bool {
	return condition.IsFalse(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition) &&
		condition.IsFalse(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
}
