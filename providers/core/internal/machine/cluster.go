package machine

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// exists waits for the Cluster.
func exists(_ context.Context, s *scope) (step.Result, error) {
	return ownership.WaitForCluster(s.cluster, s.machine.Spec.ClusterName), nil
}
