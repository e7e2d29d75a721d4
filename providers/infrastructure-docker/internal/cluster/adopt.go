package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt waits for the Cluster to own and to reference this object. Finalizer and identity are in the API server before the
// container exists.
func (c *Controller) adopt(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster == nil || !ownership.Has(s.obj.Object, s.cluster) {
		return step.Wait("an owner reference to a Cluster"), nil
	}
	if ref := s.cluster.Spec.InfrastructureRef; ref.IsDefined() && (ref.Kind != c.kinds.ClusterKind || ref.Name != s.obj.Name) {
		return step.Wait("a reference from its Cluster"), nil // The Cluster references another one.
	}
	s.name = identity.LoadBalancerContainer(s.cluster.Name)
	controllerutil.AddFinalizer(s.obj.Object, c.kinds.ClusterFinalizer)
	identity.Assign(s.obj.Object)
	return step.Checkpoint(), nil
}
