package recovery

import (
	"context"

	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
)

// hold takes the control plane from its controller. When that has answered, the members are asked again: until now, Machines may have been
// created or deleted, and the quorum may have returned.
func (c *Controller) hold(ctx context.Context, s *scope) (operation.Outcome, error) {
	out, err := operation.Hold(ctx, c.holder, s.controlPlane, s.operation())
	if err == nil && out.IsDone() {
		s.recovery.Status.InspectionTime = nil
	}
	return out, err
}
