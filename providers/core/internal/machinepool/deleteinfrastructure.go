package machinepool

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteInfrastructure deletes the infrastructure object and waits until it is gone, with all machines. Provider IDs that it still reports
// are copied before that: their Nodes are deleted afterwards.
func (c *Controller) deleteInfrastructure(ctx context.Context, s *scope) (step.Result, error) {
	c.copyLastIDs(ctx, s.pool)
	return c.follow.Delete(ctx, &s.pool.Spec.Template.Spec.InfrastructureRef, s.pool, clusterv1.InfrastructureReadyV1Beta1Condition)
}

// copyLastIDs copies provider IDs from the pool's own infrastructure object. Whatever is wrong with that must not prevent its deletion.
func (c *Controller) copyLastIDs(ctx context.Context, p *clusterv1.MachinePool) {
	obj, err := c.follow.Follow(ctx, &p.Spec.Template.Spec.InfrastructureRef, p.Namespace)
	if err != nil || obj == nil || !metav1.IsControlledBy(obj, p) {
		return
	}
	if ids, err := providerIDs(contract.InfrastructureMachinePoolOf(contract.Object{Unstructured: obj})); err == nil && len(ids) > 0 {
		p.Spec.ProviderIDList = ids
	}
}
