package cluster

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// controlPlane copies the state of the control plane object, and its endpoint unless the Cluster has one: it may host the API server.
func (c *Controller) controlPlane(ctx context.Context, s *scope) (step.Result, error) {
	cluster, ref := s.Cluster, &s.Spec.ControlPlaneRef
	if !ref.IsDefined() {
		return step.Done().KeepCondition(), nil
	}
	obj, exists, err := c.adopt(ctx, cluster, ref)
	s.plane = reference.FoundOf(obj, exists, err)
	if err != nil {
		return step.Done(), err
	}
	if !exists {
		return waitForObject(cluster, ref, clusterv1.ControlPlaneReadyV1Beta1Condition,
			clusterv1.WaitingForControlPlaneFallbackV1Beta1Reason), nil
	}
	plane := contract.ControlPlaneOf(obj)
	s.controlPlane = &plane
	if err := copyEndpoint(cluster, plane); err != nil {
		return step.Done(), err
	}
	ready, err := plane.Ready()
	if err != nil {
		return step.Done(), err
	}
	if ready != ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false) {
		recordReadiness(ctx, cluster, clusterv1.ControlPlaneReadyV1Beta1Condition, ready)
	}
	cluster.Status.Initialization.ControlPlaneInitialized = nilIfZero(ready)
	return reference.Readiness(plane.Object, ready, clusterv1.ControlPlaneReadyV1Beta1Condition,
		clusterv1.WaitingForControlPlaneFallbackV1Beta1Reason)
}

// copyEndpoint copies the endpoint of a control plane, which may have it before it is ready.
func copyEndpoint(cluster *clusterv1.Cluster, plane contract.ControlPlane) error {
	if cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return nil
	}
	endpoint, err := plane.Endpoint()
	if err == nil && endpoint.IsValid() {
		cluster.Spec.ControlPlaneEndpoint = endpoint
	}
	return err
}

// mayHaveEndpoint reports whether the control plane object has an endpoint, or may get one. One with Machines does not: they need
// the endpoint.
func (c *Controller) mayHaveEndpoint(ctx context.Context, cluster *clusterv1.Cluster) (bool, error) {
	ref := &cluster.Spec.ControlPlaneRef
	if !ref.IsDefined() {
		return false, nil
	}
	obj, err := c.follow.Follow(ctx, ref, cluster.Namespace)
	if err != nil || obj == nil {
		return err == nil, err
	}
	plane := contract.ControlPlaneOf(contract.Object{Unstructured: obj})
	endpoint, err := plane.Endpoint()
	return err == nil && (endpoint.IsValid() || !plane.HasMachines()), err
}
