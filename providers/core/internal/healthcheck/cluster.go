package healthcheck

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// exists waits for the Cluster, and stops if it is being deleted: its Machines are deleted with it.
func exists(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster != nil && !s.cluster.DeletionTimestamp.IsZero() {
		return step.Stop(), nil
	}
	return ownership.WaitForCluster(s.cluster, s.check.Spec.ClusterName), nil
}
