package recovery

import (
	"context"

	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release gives the control plane back: its controller scales up.
func (c *Controller) release(ctx context.Context, s *scope) (operation.Outcome, error) {
	for i := range s.machines {
		if err := c.forget(ctx, &s.machines[i], s.recovery); err != nil {
			return operation.Outcome{}, err
		}
	}
	if err := c.holder.Release(ctx, s.controlPlane, s.operation()); err != nil {
		return operation.Outcome{}, err
	}
	s.Succeed("")
	step.Event(ctx, "RecoveryCompleted", "The control plane of Cluster %s works again, with Machine %s", s.recovery.Spec.ClusterName,
		s.recovery.Spec.Survivor)
	return operation.Done("KubeadmControlPlane " + s.controlPlane.Name + " continues"), nil
}
