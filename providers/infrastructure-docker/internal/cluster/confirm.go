package cluster

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// confirm waits (Result.Ends) unless the object and its Cluster are up to date: the Cluster may be paused, because it is being moved. It
// precedes the creation and the removal of the container, and costs two requests.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	var reads []step.Read
	if s.cluster != nil { // In deletion, it may be gone.
		reads = append(reads, step.Reread(s.cluster, &clusterv1.Cluster{}, nil))
	}
	result, err := c.Latest(ctx, append(reads, step.Reread(s.obj.Object, c.kinds.NewCluster(), nil))...)
	return result.KeepCondition(), err
}
