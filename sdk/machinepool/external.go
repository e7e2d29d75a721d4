package machinepool

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// external writes the number of machines that the infrastructure decides on into the MachinePool. Only then does the pool get or lose
// machines: the number in the MachinePool is what users, and the conditions of the core provider, refer to.
func (c *Controller[P, M]) external(ctx context.Context, s *scope[P, M]) (step.Result, error) {
	given := s.given()
	_, paused := s.pool.Annotations[clusterv1.PausedAnnotation]
	if given == nil || paused || ptr.Equal(s.pool.Spec.Replicas, given) || !s.pool.DeletionTimestamp.IsZero() {
		return step.Done(), nil
	}
	return step.Done(), c.Patch(ctx, s.pool, func() { s.pool.Spec.Replicas = given }, step.IfUnchanged)
}
