package machinedeployment

import (
	"context"

	"sigs.k8s.io/cluster-api/providers/core/internal/children"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteSets deletes the MachineSets, and waits until they and their Machines are gone.
func (c *Controller) deleteSets(ctx context.Context, s *scope) (step.Result, error) {
	return children.Delete(ctx, c.Clients, s.deployment, s.sets, machineSetKind)
}
