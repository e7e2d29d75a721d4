package machinepool

import (
	"context"

	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// maxMachines is the maximum number of machines of a pool: that of Nodes that Kubernetes supports in a cluster.
const maxMachines = 5000

// bound truncates texts copied from providers.
func bound(_ context.Context, s *scope) (step.Result, error) {
	older := s.pool.GetV1Beta1Status()
	bounds.Conditions(older.Conditions)
	bounds.Truncate(older.FailureReason, bounds.Token)
	bounds.Truncate(older.FailureMessage, bounds.Message)
	return step.Done(), nil
}
