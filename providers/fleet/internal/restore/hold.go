package restore

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
)

// heldBy returns the operation on the control plane.
func heldBy(r *fleetv1.ControlPlaneRestore, mode fleetv1.OperationMode) fleetv1.Operation {
	op := fleetv1.Operation{Kind: fleetv1.ControlPlaneRestoreKind, Name: r.Name, UID: r.UID, Mode: mode}
	if mode == fleetv1.OperationModeRestore {
		op.DataSecret = SecretName(r)
	}
	return op
}

// hold takes the control plane from its controller.
func (c *Controller) hold(ctx context.Context, s *scope) (outcome, error) {
	observed, err := c.set(ctx, s, fleetv1.OperationModeHold)
	switch {
	case errors.Is(err, hold.ErrBusy):
		return waits(err.Error()), nil
	case err != nil:
		return outcome{}, err
	case !observed:
		return waits(fmt.Sprintf("the controller of KubeadmControlPlane %s to stop changing Machines. If it does not, it is stopped, or of a "+
			"version that does not know operations. Nothing else was changed yet", s.kcp.Name)), nil
	}
	return done("the controller of KubeadmControlPlane " + s.kcp.Name + " changes no Machines"), nil
}

// set sets the operation in a mode, and reports whether the controller of the control plane acts by it.
func (c *Controller) set(ctx context.Context, s *scope, mode fleetv1.OperationMode) (observed bool, err error) {
	return c.holder.Set(ctx, client.ObjectKeyFromObject(s.kcp), heldBy(s.restore, mode))
}
