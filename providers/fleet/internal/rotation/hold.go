package rotation

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// hold makes the rotation the operation on the control plane, and waits for the answer of its controller: one that never does may not
// be able to use Secrets with several certificates.
func (c *Controller) hold(ctx context.Context, s *scope) (step.Result, error) {
	observed, err := c.holder.Set(ctx, client.ObjectKeyFromObject(s.controlPlane), s.operation())
	if errors.Is(err, hold.ErrBusy) {
		message := fmt.Sprintf("%v: wait until it has completed, or delete it", err)
		if s.own != nil {
			return s.wait(fleetv1.OperationWaitingReason, message), nil
		}
		return s.refuse(message), nil
	}
	if err != nil {
		return step.Done(), err
	}
	if !observed && s.own == nil {
		return s.wait(fleetv1.OperationWaitingReason, fmt.Sprintf("the controller of KubeadmControlPlane %s to answer. If it does not, it is of "+
			"another version, which cannot use several certificates at once: nothing was changed", s.controlPlane.Name)), nil
	}
	return step.Done(), nil
}

// release gives the control plane back.
func (c *Controller) release(ctx context.Context, s *scope) error {
	if s.controlPlane == nil {
		return nil
	}
	return c.holder.Release(ctx, client.ObjectKeyFromObject(s.controlPlane), s.operation())
}
