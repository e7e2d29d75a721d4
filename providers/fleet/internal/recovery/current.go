package recovery

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// current ends the reconcile if an older recovery of the Cluster has not ended, or if the cache has an older copy of it:
// one without the marks of steps would be decided again, by Machines that are deleted already.
func (c *Controller) current(ctx context.Context, s *scope) (step.Result, error) {
	r := s.recovery
	if r.Status.Phase == "" {
		r.Status.Phase = fleetv1.OperationPhasePending
	}
	if r.Spec.Confirm == "" {
		return c.alone(ctx, s)
	}
	result, err := c.Latest(ctx, step.Reread(r, &fleetv1.ControlPlaneRecovery{}, func(live, cached *fleetv1.ControlPlaneRecovery) bool {
		return slices.EqualFunc(live.Status.Steps, cached.Status.Steps, func(a, b fleetv1.OperationStep) bool {
			return a.Name == b.Name && equality.Semantic.DeepEqual(a.CompletionTime, b.CompletionTime)
		})
	}))
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
			s.said = refused("ControlPlaneRecovery %s of the same Cluster has not ended: delete one of them", other.Name)
			return c.refuse(ctx, s)
		}
	}
	return step.Done(), nil
}
