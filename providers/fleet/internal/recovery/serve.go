package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
)

// workloadTimeout limits what a step does in the workload cluster.
const workloadTimeout = 15 * time.Second

// serve waits until the API server responds through the member of the survivor, which is the only one.
func (c *Controller) serve(ctx context.Context, s *scope) (operation.Outcome, error) {
	survivor := s.survivor()
	if survivor == nil {
		return operation.Outcome{}, failure("status.members has no Machine " + s.recovery.Spec.Survivor)
	}
	var members []string
	err := c.with(ctx, s, func(ctx context.Context, w Workload) (err error) {
		members, err = w.Members(ctx, survivor.Node)
		return err
	})
	switch {
	case err != nil:
		return operation.Waits(fmt.Sprintf("the API server of the workload cluster to respond: %v", err)), nil
	case !slices.Equal(members, []string{survivor.ID}):
		return operation.Waits(fmt.Sprintf("etcd to have one member, %s; it has %v", survivor.ID, members)), nil
	}
	return operation.Done("etcd has one member, " + survivor.ID + ", and the API server responds"), nil
}

// with does something in the workload cluster.
func (c *Controller) with(ctx context.Context, s *scope, do func(context.Context, Workload) error) error {
	w, err := c.connect(ctx, s.key())
	if err != nil {
		return err
	}
	defer w.Close()
	return do(ctx, w)
}
