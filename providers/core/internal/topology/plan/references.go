package plan

import (
	"context"

	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
)

// refreshMachines updates the reference of the desired control plane to the template of its machines to the newest API version of its
// kind, if the contract has a version there. Older versions in the class apply to templates and patches only: controllers that follow a
// reference update its version, and would have to do so again after each apply.
func (c *comparison) refreshMachines(ctx context.Context) error {
	if c.want.ControlPlaneMachines == nil {
		return nil
	}
	machines := desired.RefTo(c.want.ControlPlaneMachines)
	if _, err := c.External.Versions.Refresh(ctx, machines); err != nil {
		return err
	}
	return c.want.SetMachines(machines)
}
