package recovery

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// refuse ends a recovery that users have confirmed, as long as nothing is deleted: it must not begin by surprise when what is wrong has
// changed, and Machines that are healthy today do not respond. One that is not confirmed is considered again after a while.
func (c *Controller) refuse(ctx context.Context, s *scope) (step.Result, error) {
	if s.recovery.Spec.Confirm == "" || s.completed(checkStep) {
		return step.WaitAtMost(inspectionInterval, s.said.message), nil
	}
	if s.step(holdStep) != nil && s.controlPlane != (client.ObjectKey{}) {
		for i := range s.machines {
			if err := c.forget(ctx, &s.machines[i], s.recovery); err != nil {
				return step.Result{}, err
			}
		}
		if err := c.holder.Release(ctx, s.controlPlane, s.operation()); err != nil {
			return step.Result{}, err
		}
	}
	s.recovery.Status.Phase = fleetv1.OperationPhaseFailed
	s.said.message += ". It does not begin later: create another one to try again"
	return step.Stop(), nil
}
