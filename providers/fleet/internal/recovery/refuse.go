package recovery

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// refuse ends a recovery that users have confirmed, as long as nothing is deleted: when what is wrong has changed, Machines that are
// healthy today may not respond. The control plane is given back before.
func (c *Controller) refuse(ctx context.Context, s *scope, reason string) (step.Result, error) {
	if err := c.undo(ctx, s); err != nil {
		return step.Result{}, err
	}
	return s.Refuse(reason), nil
}

// undo gives the control plane back if nothing is deleted yet, and it was asked for.
func (c *Controller) undo(ctx context.Context, s *scope) error {
	if s.Underway() || !s.Begun(fleetv1.RecoveryStepHold) || s.controlPlane == (client.ObjectKey{}) {
		return nil
	}
	for i := range s.machines {
		if err := c.forget(ctx, &s.machines[i], s.recovery); err != nil {
			return err
		}
	}
	return c.holder.Release(ctx, s.controlPlane, s.operation())
}
