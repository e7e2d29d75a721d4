package remediation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
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
	m := candidate(state.ControlPlane, inProgress)
	switch {
	case m == nil:
		return step.Done(), nil
	case m.Deleting():
		return step.Wait("Machine " + m.Name + " to be deleted"), nil
	}
	now := r.Manager.Clock.Now()
	if failure := firstFailure(state, m, inProgress, now); failure != nil {
		return r.report(ctx, m, waiting(failure.Reason, failure.RetryAfter))
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
	if state.Initialized() && state.StackedEtcd() {
		switch why := state.MayRemove(ctx, m); why {
		case "":
		case membership.NoSuccessor:
			return r.report(ctx, m, status{
				clusterv1.RemediationFailedV1Beta1Reason, clusterv1.ConditionSeverityWarning,
				"There is no healthy etcd member that can become the leader", health.EtcdBackstop,
			})
		default:
			return r.report(ctx, m, waiting("Waiting for "+why, health.EtcdBackstop))
		}
	}
	if err := r.Manager.Delete(ctx, state.ControlPlane, m); err != nil {
		if step.IsStale(err) {
			return step.Done(), err
		}
		failed := status{clusterv1.RemediationFailedV1Beta1Reason, clusterv1.ConditionSeverityError, "The Machine cannot be deleted", 0}
		_, saveErr := r.report(ctx, m, failed)
		return step.Done(), errors.Join(err, saveErr)
	}
	_, err := r.report(ctx, m, status{clusterv1.RemediationInProgressV1Beta1Reason, clusterv1.ConditionSeverityWarning, "", 0})
	return step.Wait(fmt.Sprintf("Machine %s to be deleted, which is being remediated (retry %d)", m.Name, record.RetryCount)), err
}

// status is the condition of a Machine about its remediation.
type status struct {
	reason   string
	severity clusterv1.ConditionSeverity
	message  string
	// after is when the remediation is retried without an event; zero means never.
	after time.Duration
}

// waiting is the status of a Machine whose remediation has to wait.
func waiting(message string, after time.Duration) status {
	return status{clusterv1.WaitingForRemediationV1Beta1Reason, clusterv1.ConditionSeverityWarning, message, after}
}

// report sets the condition of the Machine, and lets the steps that follow continue.
func (r Remediator) report(ctx context.Context, m *snapshot.Machine, s status) (step.Result, error) {
	remediated := condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, s.severity, s.reason, "%s", s.message)
	err := r.Manager.SetReports(ctx, m.Machine, []clusterv1.Condition{remediated},
		report.False(clusterv1.MachineOwnerRemediatedCondition, reportedAs(s.reason), "%s", s.message))
	if err != nil || s.after == 0 {
		return step.Done(), err
	}
	return step.Again(s.after), nil
}

// reportedAs returns the reason of v1beta2 for one of v1beta1.
func reportedAs(reason string) string {
	switch reason {
	case clusterv1.WaitingForRemediationV1Beta1Reason:
		return clusterv1.MachineOwnerRemediatedRemediationDeferredReason
	case clusterv1.RemediationInProgressV1Beta1Reason:
		return clusterv1.MachineOwnerRemediatedMachineDeletingReason
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

// candidate returns the Machine to remediate, nil if there is none: if a remediation is in progress, only its Machine;
// otherwise the oldest one without a Node, or else the oldest one.
func candidate(cp *snapshot.ControlPlane, inProgress *record) *snapshot.Machine {
	if inProgress != nil {
		m := cp.Named(inProgress.Machine)
		if m == nil || m.Deleting() {
			return nil // because its replacement comes first
		}
		return m
	}
	var first *snapshot.Machine
	for _, m := range cp.Machines {
		if unhealthy(m) && (first == nil || m.Node() == "" && first.Node() != "") {
			first = m
		}
	}
	return first
}
