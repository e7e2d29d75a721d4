package config

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt uses data that already exists.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	if s.ready() {
		return step.Done(), nil
	}
	if name := s.ownData(); name != nil {
		markReady(s.config, *name)
		return step.Done(), nil
	}
	err := c.cached.Get(ctx, s.secretKey(), &corev1.Secret{})
	switch {
	case apierrors.IsNotFound(err):
		return step.Done(), nil
	case err != nil:
		return step.Done(), fmt.Errorf("reading Secret %s: %w", s.secretName(), err)
	}
	return c.occupied(ctx, s)
}
