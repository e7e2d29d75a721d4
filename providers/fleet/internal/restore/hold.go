package restore

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
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
func (c *Controller) hold(ctx context.Context, s *scope) (operation.Outcome, error) {
	return operation.Hold(ctx, c.holder, client.ObjectKeyFromObject(s.kcp), heldBy(s.restore, fleetv1.OperationModeHold))
}

// set sets the operation in a mode, and reports whether the controller of the control plane acts by it.
func (c *Controller) set(ctx context.Context, s *scope, mode fleetv1.OperationMode) (observed bool, err error) {
	return c.holder.Set(ctx, client.ObjectKeyFromObject(s.kcp), heldBy(s.restore, mode))
}
