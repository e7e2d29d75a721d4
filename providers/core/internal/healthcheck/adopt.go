package healthcheck

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the cluster name label and the Cluster as owner. Checks that a topology or admission created have them already.
func adopt(_ context.Context, s *scope) (step.Result, error) {
	ownership.AddCluster(s.check, s.cluster)
	return step.Checkpoint(), nil
}
