package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// mustGoOn reports whether a restore that is being deleted goes on: Machines were deleted, and there is no other control plane.
func (s *scope) mustGoOn() bool {
	r := s.restore
	_, abandoned := r.Annotations[fleetv1.AbandonAnnotation]
	_, moved := r.Annotations[deleteForMove]
	return controllerutil.ContainsFinalizer(r, fleetv1.ControlPlaneRestoreFinalizer) && !r.Ended() && !abandoned && !moved &&
		s.Begun(fleetv1.RestoreStepFence)
}

// discard gives the control plane back, deletes what was stored, and removes the finalizer.
func (c *Controller) discard(ctx context.Context, s *scope) (step.Result, error) {
	r := s.restore
	if !controllerutil.ContainsFinalizer(r, fleetv1.ControlPlaneRestoreFinalizer) {
		return step.Stop(), nil
	}
	if s.mustGoOn() {
		s.Finishing = "It is deleted once the restore has completed, because control plane Machines were already deleted. To leave the control " +
			"plane as it is now, set annotation " + fleetv1.AbandonAnnotation + "."
		result, err := step.Run(ctx, s, c.steps()...)
		if err != nil || s.mustGoOn() || result.Ends() {
			return result, err
		}
	}
	if _, moved := r.Annotations[deleteForMove]; !moved && !r.Ended() {
		if stale, err := c.latest(ctx, s); stale.Ends() || err != nil {
			return stale, err // Machines may have been deleted in the meantime.
		}
		if err := c.giveBack(ctx, s); err != nil {
			return s.Wait(time.Minute, "the restore to be undone: "+err.Error()), nil
		}
	}
	controllerutil.RemoveFinalizer(r, fleetv1.ControlPlaneRestoreFinalizer)
	delete(r.Annotations, operation.BlockMoveAnnotation)
	return step.Stop(), nil
}

// giveBack undoes what was done before Machines were deleted.
func (c *Controller) giveBack(ctx context.Context, s *scope) error {
	f, err := c.facts(ctx, s)
	if err != nil && f.cluster == nil {
		return err
	}
	if f.kcp != nil {
		op := heldBy(s.restore, fleetv1.OperationModeHold)
		if err := c.holder.Release(ctx, client.ObjectKeyFromObject(f.kcp), op); err != nil {
			return err
		}
	}
	if !s.Begun(fleetv1.RestoreStepPrepare) {
		return nil
	}
	// Without its store, the object with the data stays there: it is encrypted, and its key is deleted first.
	if err := c.dropData(ctx, s.restore); err != nil && !errors.Is(err, backupstore.ErrInvalid) {
		return fmt.Errorf("deleting the data for the Machine: %w", err)
	}
	return nil
}
