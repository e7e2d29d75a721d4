package controller

import (
	"context"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/preflight"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// preflight checks the spec. What fails is checked again when this object or another provider changes.
func (c *Controller) preflight(ctx context.Context, s *scope) (step.Result, error) {
	cfg, err := c.source.Config(ctx)
	if err != nil {
		return step.Done(), err
	}
	if failed := preflight.Check(s.Provider, s.all, cfg.Providers); failed != nil {
		clearFailure(s.Object, operatorv1.ProviderInstalledCondition) // It is that of another spec, or will be found again.
		return waits(operatorv1.PreflightCheckCondition, failed.Reason, failed.Message), nil
	}
	return step.Done(), nil
}
