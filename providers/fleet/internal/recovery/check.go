package recovery

import (
	"context"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// check decides again, by answers that are newer than the hold. If the recovery is no longer right, it says so.
func (c *Controller) check(ctx context.Context, s *scope) (step.Result, error) {
	if s.completed(checkStep) {
		return step.Done(), nil
	}
	result, err := c.judge(ctx, s)
	if err != nil || result.Ends() {
		return result, err
	}
	s.recovery.Status.Phase = fleetv1.OperationPhaseRunning
	s.complete(checkStep, c.Clock.Now(), "%d of %d etcd members respond, and none knows a leader", len(reachable(s.recovery)),
		s.recovery.Status.Voters)
	s.said = verdict{reason: fleetv1.OperationRunningReason, message: "The recovery is certain: fencing the lost machines"}
	step.Event(ctx, "RecoveryBegan", "Recovering the control plane of Cluster %s from Machine %s", s.recovery.Spec.ClusterName,
		s.recovery.Spec.Survivor)
	return step.WaitAtMost(poll, "the mark of the decision to be written"), nil
}
