package controlplane

import (
	"context"

	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// infrastructure waits for the infrastructure of the Cluster, which Machines need.
func infrastructure(_ context.Context, s *scope) (step.Result, error) {
	if !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return step.Wait("the infrastructure of Cluster " + s.Key().String()), nil
	}
	return step.Done(), nil
}
