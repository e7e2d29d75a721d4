package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// certificates creates the CAs and the service account key. Whether the cluster CA is new is kept for the step scale.
func (c *Controller) certificates(ctx context.Context, s *scope) (result step.Result, err error) {
	s.newCA, result, err = c.credentials.Certificates(ctx, s.ControlPlane)
	return result, err
}
