package rotation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// withdraw ends a rotation that is being deleted. Until the new keys are in use, the Secrets get the old certificates again; Machines that
// trust the new ones, too, do no harm: their keys are gone with the rotation. Later, there is no way back, and the rotation is completed.
func (c *Controller) withdraw(ctx context.Context, s *scope) (step.Result, error) {
	r := s.rotation
	if r.Ended() {
		controllerutil.RemoveFinalizer(r, fleetv1.RotationFinalizer)
		return step.Done(), nil
	}
	if err := c.readAll(ctx, s); err != nil {
		return step.Done(), err
	}
	if s.cluster != nil && s.cluster.DeletionTimestamp.IsZero() && s.own != nil && s.controlPlane != nil {
		if s.isReissuing() {
			return c.complete(ctx, s)
		}
		if err := c.distribute(ctx, s, authority.Old); err != nil {
			return step.Done(), err
		}
	}
	if err := c.release(ctx, s); err != nil {
		return step.Done(), err
	}
	controllerutil.RemoveFinalizer(r, fleetv1.RotationFinalizer)
	return step.Done(), nil
}

// isReissuing reports whether a Secret has a new key.
func (s *scope) isReissuing() bool {
	for _, a := range s.authorities() {
		if secret := s.secrets[a]; secret != nil && s.changes[a].StageOf(secret.Data) >= authority.Reissued {
			return true
		}
	}
	return false
}

// complete takes the remaining steps of a rotation that is being deleted.
func (c *Controller) complete(ctx context.Context, s *scope) (step.Result, error) {
	s.Finishing = "It is deleted once the rotation has completed, because the new keys are in use."
	for _, one := range []func(context.Context, *scope) (step.Result, error){c.hold, c.generate, c.advance, c.finish} {
		result, err := one(ctx, s)
		if err != nil || result.Ends() {
			return result, err
		}
	}
	controllerutil.RemoveFinalizer(s.rotation, fleetv1.RotationFinalizer)
	return step.Done(), nil
}
