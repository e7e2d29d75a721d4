package machine

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// owners waits for the Machine and its Cluster.
func (c *Controller) owners(_ context.Context, s *scope) (step.Result, error) {
	if s.machine == nil || s.cluster == nil {
		return step.Wait("owner references to a Machine and a Cluster"), nil
	}
	return step.Done(), nil
}
