package recovery

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// workloadTimeout limits what a reconcile does in the workload cluster.
const workloadTimeout = 15 * time.Second

// serve waits until the API server responds through the member of the survivor, which is the only one.
func (c *Controller) serve(ctx context.Context, s *scope) (step.Result, error) {
	if s.completed(serveStep) {
		return step.Done(), nil
	}
	now, survivor := c.Clock.Now(), s.survivor()
	if survivor == nil {
		return c.fail(s, "status.members has no Machine "+s.recovery.Spec.Survivor)
	}
	var members []string
	err := c.with(ctx, s, func(ctx context.Context, w Workload) (err error) {
		members, err = w.Members(ctx, survivor.Node)
		return err
	})
	switch {
	case err != nil:
		return s.waits(serveStep, now, "the API server of the workload cluster to respond: %v", err)
	case !slices.Equal(members, []string{survivor.ID}):
		return s.waits(serveStep, now, "etcd to have one member, %s; it has %v", survivor.ID, members)
	}
	s.complete(serveStep, now, "etcd has one member, %s, and the API server responds", survivor.ID)
	return step.Done(), nil
}

// with does something in the workload cluster.
func (c *Controller) with(ctx context.Context, s *scope, do func(context.Context, Workload) error) error {
	ctx, cancel := context.WithTimeout(ctx, workloadTimeout)
	defer cancel()
	w, err := c.connect(ctx, s.key())
	if err != nil {
		return err
	}
	defer w.Close()
	return do(ctx, w)
}
