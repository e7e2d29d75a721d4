package machineset

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/children"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteMachines deletes the Machines, and waits until they are gone.
func (c *Controller) deleteMachines(ctx context.Context, s *scope) (step.Result, error) {
	return children.Delete(ctx, c.Clients, s.set, s.machines, clusterv1.MachineKind)
}
