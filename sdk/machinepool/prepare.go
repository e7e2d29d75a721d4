package machinepool

import (
	"context"

	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// prepare waits for what the first machines depend on. A pool that has machines does not wait: it may have to delete some.
func (c *Controller[P, M]) prepare(_ context.Context, s *scope[P, M]) (step.Result, error) {
	wait := func(what, reason string) (step.Result, error) {
		s.waits = true
		return step.Wait(what).Because(reason), nil
	}
	switch {
	case len(s.members) > 0:
	case !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return wait("the infrastructure of Cluster "+s.cluster.Name, WaitingForClusterInfrastructureReason)
	case ptr.Deref(s.pool.Spec.Template.Spec.Bootstrap.DataSecretName, "") == "":
		return wait("the bootstrap data of MachinePool "+s.pool.Name, WaitingForBootstrapDataReason)
	}
	return step.Done().KeepCondition(), nil
}
