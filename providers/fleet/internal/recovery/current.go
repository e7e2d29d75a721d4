package recovery

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// current ends the reconcile if an older recovery of the Cluster has not ended, or if the cache has an older copy of it:
// one without the marks of steps would be decided again, by Machines that are deleted already.
func (c *Controller) current(ctx context.Context, s *scope) (step.Result, error) {
	result, err := operation.Latest(ctx, c.Clients, s.Run, s.recovery, &fleetv1.ControlPlaneRecovery{},
		func(r *fleetv1.ControlPlaneRecovery) any { return r.Status })
	if err != nil || result.Ends() {
		return result, err
	}
	return c.alone(ctx, s)
}

// alone ends the reconcile if an older recovery of the Cluster has not ended: both would ask the members, in turns.
func (c *Controller) alone(ctx context.Context, s *scope) (step.Result, error) {
	r, list := s.recovery, &fleetv1.ControlPlaneRecoveryList{}
	if err := c.Client.List(ctx, list, client.InNamespace(r.Namespace)); err != nil {
		return step.Result{}, fmt.Errorf("listing ControlPlaneRecoveries: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		older := other.CreationTimestamp.Before(&r.CreationTimestamp) ||
			other.CreationTimestamp.Equal(&r.CreationTimestamp) && other.Name < r.Name
		if other.UID != r.UID && other.Spec.ClusterName == r.Spec.ClusterName && !other.Ended() && older {
			return c.refuse(ctx, s, "ControlPlaneRecovery "+other.Name+" of the same Cluster has not ended: delete one of them")
		}
	}
	return step.Done(), nil
}
