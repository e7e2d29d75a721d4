package machinepool

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/node"
	"sigs.k8s.io/cluster-api/provider/step"
)

// owners waits for the MachinePool and its Cluster.
func (c *Controller) owners(_ context.Context, s *scope) (step.Result, error) {
	if s.pool == nil || s.cluster == nil {
		return step.Wait("owner references to a MachinePool and a Cluster"), nil
	}
	return step.Done(), nil
}

// claim writes the finalizer and the provider ID.
func (c *Controller) claim(_ context.Context, s *scope) (step.Result, error) {
	controllerutil.AddFinalizer(s.obj, dockerv1.MachinePoolFinalizer)
	s.obj.Spec.ProviderID = "docker:////" + s.cluster.Name + "-dmp-" + s.obj.Name
	s.obj.Status.InfrastructureMachineKind = node.Kind
	return step.Checkpoint(), nil
}

// prepare waits for what the first machines depend on. A pool that has machines does not wait: it may have to delete some.
func (c *Controller) prepare(_ context.Context, s *scope) (step.Result, error) {
	wait := func(what, reason string) (step.Result, error) {
		s.waits = true
		return step.Wait(what).Because(reason), nil
	}
	switch {
	case len(s.members) > 0:
	case !s.cluster.Status.InfrastructureReady:
		return wait("the infrastructure of Cluster "+s.cluster.Name, dockerv1.WaitingForClusterInfrastructureReason)
	case s.pool.Spec.Template.Spec.Bootstrap.DataSecretName == nil:
		return wait("the bootstrap data of MachinePool "+s.pool.Name, dockerv1.WaitingForBootstrapDataReason)
	}
	return step.Done().KeepCondition(), nil
}
