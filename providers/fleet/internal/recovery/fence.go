package recovery

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/fence"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
)

// fence deletes the lost Machines, and waits until their infrastructure is gone: one that comes back later would be another etcd with the
// same IDs and other data. If the user vouches for that, Machines that cannot be deleted are removed without it.
func (c *Controller) fence(ctx context.Context, s *scope) (operation.Outcome, error) {
	now := c.Clock.Now()
	var left []string
	for _, name := range s.recovery.Spec.LostMachines {
		m := s.machine(name)
		if m == nil {
			continue
		}
		lost := s.recovery.Spec.Fenced && fence.Overdue(m, now)
		if err := fence.Delete(ctx, c.Clients, m, lost); err != nil {
			return operation.Outcome{}, err
		}
		if lost {
			continue
		}
		gone, err := c.gone(ctx, m)
		if err != nil {
			return operation.Outcome{}, err
		}
		if !gone {
			left = append(left, fence.Obstacle(m))
		}
	}
	if len(left) > 0 {
		return operation.Waits("the infrastructure of Machines to be deleted: " + strings.Join(left, "; ")), nil
	}
	how := "their infrastructure is deleted"
	if s.recovery.Spec.Fenced {
		how += ", or, as spec.fenced says, they do not run"
	}
	return operation.Done("Machines " + strings.Join(s.recovery.Spec.LostMachines, ", ") + ": " + how), nil
}

// gone reports whether the infrastructure of a Machine is deleted. The Machine itself may wait to delete its Node, which needs the
// API server.
func (c *Controller) gone(ctx context.Context, m *clusterv1.Machine) (bool, error) {
	_, err := c.infrastructure(ctx, m)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}
