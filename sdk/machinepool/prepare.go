package machinepool

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// owners waits for the MachinePool and its Cluster.
func (c *Controller[P, M]) owners(_ context.Context, s *scope[P, M]) (step.Result, error) {
	if s.pool == nil || s.cluster == nil {
		return step.Wait("owner references to a MachinePool and a Cluster"), nil
	}
	return step.Done(), nil
}

// claim writes the finalizer and what the provider sets in pools.
func (c *Controller[P, M]) claim(_ context.Context, s *scope[P, M]) (step.Result, error) {
	controllerutil.AddFinalizer(s.obj, c.provider.Finalizer)
	if c.provider.Claim != nil {
		c.provider.Claim(s.obj, s.cluster)
	}
	*c.provider.Fields(s.obj).MachineKind = c.provider.Machine.Kind
	return step.Checkpoint(), nil
}

// prepare waits for what the first machines depend on. A pool that has machines does not wait: it may have to delete some.
func (c *Controller[P, M]) prepare(_ context.Context, s *scope[P, M]) (step.Result, error) {
	wait := func(what, reason string) (step.Result, error) {
		s.waits = true
		return step.Wait(what).Because(reason), nil
	}
	switch {
	case len(s.members) > 0:
	case !s.cluster.Status.InfrastructureReady:
		return wait("the infrastructure of Cluster "+s.cluster.Name, WaitingForClusterInfrastructureReason)
	case s.pool.Spec.Template.Spec.Bootstrap.DataSecretName == nil:
		return wait("the bootstrap data of MachinePool "+s.pool.Name, WaitingForBootstrapDataReason)
	}
	return step.Done().KeepCondition(), nil
}

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
