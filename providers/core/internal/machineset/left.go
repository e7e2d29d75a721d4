package machineset

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// left lists the Machines that a MachineSet still has, which is being deleted.
func (c *Controller) left(ctx context.Context, s *scope) (step.Result, error) {
	own, _, err := list(ctx, c.Client, s.set)
	s.machines, s.listed = own, err == nil
	return step.Done(), err
}
