package cluster

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// initialized sets ControlPlaneInitialized to True once, and never reverts it. The control plane object reports it; without
// one, the first control plane Machine with a Node counts.
func (c *Controller) initialized(ctx context.Context, s *scope) (step.Result, error) {
	if condition.IsTrue(s.Cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) {
		return step.Done(), nil
	}
	if s.Spec.ControlPlaneRef.IsDefined() {
		return s.initializedByObject()
	}
	machines, err := c.machines(ctx, s.Cluster)
	if err != nil {
		return step.Done(), err
	}
	for _, m := range machines {
		if isControlPlane(m) && m.Status.NodeRef.IsDefined() {
			return step.Done(), nil
		}
	}
	return step.Wait("the first control plane machine to have its status.nodeRef set").Because(clusterv1.MissingNodeRefV1Beta1Reason), nil
}

func (s *scope) initializedByObject() (step.Result, error) {
	initialized := false
	if s.controlPlane != nil {
		var err error
		if initialized, err = s.controlPlane.Initialized(); err != nil {
			return step.Done(), err
		}
	}
	if !initialized {
		return step.Wait("control plane provider to indicate the control plane has been initialized").
			Because(clusterv1.WaitingForControlPlaneProviderInitializedV1Beta1Reason), nil
	}
	return step.Done(), nil
}
