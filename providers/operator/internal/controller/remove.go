package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// remove deletes the components.
func (c *Controller) remove(ctx context.Context, s *scope) (step.Result, error) {
	if controllerutil.ContainsFinalizer(s.Object, operatorv1.ProviderFinalizer) && !isDuplicate(s) {
		if err := c.engine.Remove(ctx, c.kind.Type, s.GetName()); err != nil {
			return step.Done(), &step.Error{Reason: operatorv1.OldComponentsDeletionErrorReason, Err: err}
		}
	}
	c.drift.forget(s.GetUID())
	c.inputs.forget(s.Provider)
	c.source.Forget(s.Provider)
	controllerutil.RemoveFinalizer(s.Object, operatorv1.ProviderFinalizer)
	return step.Stop(), nil
}
