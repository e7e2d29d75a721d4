package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// kubeconfig creates and renews the admin kubeconfig.
func (c *Controller) kubeconfig(ctx context.Context, s *scope) (step.Result, error) {
	return c.credentials.Kubeconfig(ctx, s.ControlPlane)
}
