package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// connect gets the connection that the steps after it use. They do nothing without one.
func (c *Controller) connect(ctx context.Context, s *scope) (result step.Result, err error) {
	s.connection, result, err = c.connector.Connect(ctx, s.ControlPlane)
	return result, err
}
