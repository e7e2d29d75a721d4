package rotation

import (
	"context"
	"fmt"
	"strings"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// finish gives the control plane back, and removes the keys from the Secret of the rotation: the Secrets of the Cluster have them.
func (c *Controller) finish(ctx context.Context, s *scope) (step.Result, error) {
	if err := c.release(ctx, s); err != nil {
		return step.Done(), err
	}
	removeKeys := func() {
		for key := range s.own.Data {
			if strings.HasSuffix(key, keySuffix) {
				delete(s.own.Data, key)
			}
		}
	}
	if err := c.Patch(ctx, s.own, removeKeys); err != nil {
		return step.Done(), fmt.Errorf("removing the keys from Secret %s: %w", s.own.Name, failsafe.Redacted(err))
	}
	s.rotation.Status.Phase = fleetv1.OperationPhaseCompleted
	step.Event(ctx, "RotationCompleted", "The old certificate authorities of Cluster %s are no longer trusted", s.rotation.Spec.ClusterName)
	return step.Done(), nil
}
