package machinepool

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// owners waits for the MachinePool and its Cluster.
func (c *Controller[P, M]) owners(_ context.Context, s *scope[P, M]) (step.Result, error) {
	if s.pool == nil || s.cluster == nil {
		return step.Wait("owner references to a MachinePool and a Cluster"), nil
	}
	return step.Done(), nil
}
