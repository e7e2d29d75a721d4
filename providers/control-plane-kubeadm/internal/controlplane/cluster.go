package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// hasCluster waits for the Cluster to own the control plane.
func hasCluster(_ context.Context, s *scope) (step.Result, error) {
	if s.Cluster == nil {
		return step.Wait("the Cluster to own it"), nil
	}
	return step.Done(), nil
}
