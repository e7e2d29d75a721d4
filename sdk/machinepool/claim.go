package machinepool

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// claim writes the finalizer and what the provider sets in pools.
func (c *Controller[P, M]) claim(_ context.Context, s *scope[P, M]) (step.Result, error) {
	controllerutil.AddFinalizer(s.obj, c.provider.Finalizer)
	if c.provider.Claim != nil {
		c.provider.Claim(s.obj, s.cluster)
	}
	*c.provider.Fields(s.obj).MachineKind = c.provider.Machine.Kind
	return step.Checkpoint(), nil
}
