package binding

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release deletes the binding of a Cluster that is being deleted.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	c.ledger.Forget(s.key())
	if s.binding == nil {
		return step.Stop(), nil
	}
	live := &clusterv1.Cluster{}
	err := c.Live.Get(ctx, s.key(), live)
	if client.IgnoreNotFound(err) != nil {
		return step.Done(), fmt.Errorf("reading Cluster %s: %w", s.key(), err)
	}
	if !apierrors.IsNotFound(err) && live.DeletionTimestamp.IsZero() {
		return step.Stop(), nil // Another Cluster has the name now.
	}
	return step.Done(), c.DeleteAny(ctx, s.binding)
}
