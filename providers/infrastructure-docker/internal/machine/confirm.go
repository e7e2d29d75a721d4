package machine

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/node"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// confirm waits (Result.Ends) unless the object and its Cluster are up to date in what decides about a container. It precedes the
// creation and the removal of containers, and costs a request for each; none for an object that this reconcile wrote.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	var reads []step.Read
	if s.cluster != nil { // In deletion, it may be gone.
		reads = append(reads, step.Reread(s.cluster, &clusterv1.Cluster{}, nil))
	}
	if !s.current {
		reads = append(reads, step.Reread(s.obj.Object, c.kinds.NewMachine(), c.same))
	}
	result, err := c.Latest(ctx, reads...)
	return result.KeepCondition(), err
}

// same reports whether two versions of the object had a container, or both had none.
func (c *Controller) same(live, cached step.Object) bool {
	is, ok := c.kinds.MachineOf(live)
	was, _ := c.kinds.MachineOf(cached)
	return ok && node.Machine{Object: is}.HadContainer() == node.Machine{Object: was}.HadContainer()
}
