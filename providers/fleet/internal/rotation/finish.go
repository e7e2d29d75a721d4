package rotation

import (
	"context"
	"fmt"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// finish gives the control plane back, and removes the keys from the Secret of the rotation: the Secrets of the Cluster have them.
func (c *Controller) finish(ctx context.Context, s *scope) (step.Result, error) {
	if err := c.release(ctx, s); err != nil {
		return step.Done(), err
	}
	if err := c.seal(ctx, s); err != nil {
		return step.Done(), err
	}
	s.Succeed("")
	step.Event(ctx, "RotationCompleted", "The old certificate authorities of Cluster %s are no longer trusted", s.rotation.Spec.ClusterName)
	return step.Done(), nil
}

// seal removes the keys from the Secret of the rotation, and the label of the Cluster: what has the label goes with it, but this Secret
// stays as long as the rotation.
func (c *Controller) seal(ctx context.Context, s *scope) error {
	err := c.Patch(ctx, s.own, func() {
		delete(s.own.Labels, clusterv1.ClusterNameLabel)
		for key := range s.own.Data {
			if strings.HasSuffix(key, keySuffix) {
				delete(s.own.Data, key)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("removing the keys from Secret %s: %w", s.own.Name, failsafe.Redacted(err))
	}
	return nil
}
