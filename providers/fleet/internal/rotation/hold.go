package rotation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// hold makes the rotation the operation on the control plane, and waits for the answer of its controller: one that never does may not
// be able to use Secrets with several certificates.
func (c *Controller) hold(ctx context.Context, s *scope) (step.Result, error) {
	out, err := operation.Hold(ctx, c.holder, client.ObjectKeyFromObject(s.controlPlane), s.operation())
	if err != nil || out.IsDone() || s.Underway() && hold.Busy(s.controlPlane, s.operation()) == nil {
		return step.Done(), err
	}
	return s.Wait(poll, "Waiting for "+out.Message()), nil
}

// release gives the control plane back.
func (c *Controller) release(ctx context.Context, s *scope) error {
	if s.controlPlane == nil {
		return nil
	}
	return c.holder.Release(ctx, client.ObjectKeyFromObject(s.controlPlane), s.operation())
}
