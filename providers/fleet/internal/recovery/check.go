package recovery

import (
	"context"
	"fmt"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// check decides again, by answers that are newer than the hold. If the recovery is no longer right, it says so.
func (c *Controller) check(ctx context.Context, s *scope) (operation.Outcome, error) {
	switch against := decide(s.recovery, c.Clock.Now()); against.reason {
	case "":
	case fleetv1.OperationRefusedReason:
		if err := c.undo(ctx, s); err != nil {
			return operation.Outcome{}, err
		}
		return operation.Outcome{}, operation.Refusal(against.message)
	default:
		return operation.Waits(against.message), nil
	}
	s.recovery.Status.Phase = fleetv1.OperationPhaseRunning
	step.Event(ctx, "RecoveryBegan", "Recovering the control plane of Cluster %s from Machine %s", s.recovery.Spec.ClusterName,
		s.recovery.Spec.Survivor)
	return operation.Done(fmt.Sprintf("the recovery is certain: %d of %d etcd members respond, and none knows a leader",
		len(reachable(s.recovery)), s.recovery.Status.Voters)), nil
}
