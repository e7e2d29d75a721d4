package recovery

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// giveBack takes commands to infrastructure providers back, and gives the control plane back to its controller.
func (c *Controller) giveBack(ctx context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.recovery, fleetv1.ControlPlaneRecoveryFinalizer) {
		return step.Stop(), nil
	}
	machines, err := c.machines(ctx, s.key())
	if err != nil {
		return step.Result{}, err
	}
	for i := range machines {
		if err := c.forget(ctx, &machines[i], s.recovery); err != nil {
			return step.Result{}, err
		}
	}
	cluster := &clusterv1.Cluster{}
	err = c.Live.Get(ctx, s.key(), cluster)
	if err != nil && !apierrors.IsNotFound(err) {
		return step.Result{}, fmt.Errorf("reading Cluster %s: %w", s.key().Name, err)
	}
	if err == nil && cluster.Spec.ControlPlaneRef.Kind == kubeadmControlPlane {
		plane := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}
		if err := c.holder.Release(ctx, plane, s.operation()); err != nil {
			return step.Result{}, err
		}
	}
	controllerutil.RemoveFinalizer(s.recovery, fleetv1.ControlPlaneRecoveryFinalizer)
	return step.Stop(), nil
}
