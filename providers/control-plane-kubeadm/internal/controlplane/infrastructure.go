package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// infrastructure waits for the infrastructure of the Cluster, which Machines need.
func infrastructure(_ context.Context, s *scope) (step.Result, error) {
	if !s.Cluster.Status.InfrastructureReady {
		return step.Wait("the infrastructure of Cluster " + s.Key().String()), nil
	}
	return step.Done(), nil
}
