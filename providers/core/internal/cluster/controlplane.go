package cluster

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// controlPlane copies the state of the control plane object.
func (c *Controller) controlPlane(ctx context.Context, s *scope) (step.Result, error) {
	cluster, ref := s.Cluster, s.Spec.ControlPlaneRef
	if ref == nil {
		return step.Done().KeepCondition(), nil
	}
	obj, err := c.adopt(ctx, cluster, ref)
	if err != nil {
		return step.Done(), err
	}
	if obj == nil {
		return waitForObject(cluster, ref, clusterv1.ControlPlaneReadyCondition, clusterv1.WaitingForControlPlaneFallbackReason), nil
	}
	plane := contract.ControlPlaneOf(obj)
	s.controlPlane = &plane
	ready, err := plane.Ready()
	if err != nil {
		return step.Done(), err
	}
	if ready != cluster.Status.ControlPlaneReady {
		recordReadiness(ctx, cluster, clusterv1.ControlPlaneReadyCondition, ready)
	}
	cluster.Status.ControlPlaneReady = ready
	return reference.Readiness(plane.Object, ready, clusterv1.ControlPlaneReadyCondition, clusterv1.WaitingForControlPlaneFallbackReason)
}
