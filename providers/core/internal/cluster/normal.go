package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// finalizer adds the finalizer, so that this controller runs the deletion.
func (c *Controller) finalizer(_ context.Context, s *scope) (step.Result, error) {
	if !started(s.Cluster) {
		return step.Stop(), nil
	}
	if controllerutil.AddFinalizer(s.Cluster, clusterv1.ClusterFinalizer) {
		return step.Checkpoint(), nil
	}
	return step.Done(), nil
}

// infrastructure copies the state of the infrastructure object.
func (c *Controller) infrastructure(ctx context.Context, s *scope) (step.Result, error) {
	cluster, ref := s.Cluster, s.Spec.InfrastructureRef
	if ref == nil {
		return step.Done().KeepCondition(), nil
	}
	obj, err := c.adopt(ctx, cluster, ref)
	if err != nil {
		return step.Done(), err
	}
	if obj == nil {
		return waitForObject(cluster, ref, clusterv1.InfrastructureReadyCondition, clusterv1.WaitingForInfrastructureFallbackReason), nil
	}
	infra := contract.InfrastructureClusterOf(obj)
	ready, err := infra.Ready()
	if err != nil {
		return step.Done(), err
	}
	if ready != cluster.Status.InfrastructureReady {
		recordReadiness(ctx, cluster, clusterv1.InfrastructureReadyCondition, ready)
	}
	cluster.Status.InfrastructureReady = ready
	result, err := reference.Readiness(infra.Object, ready, clusterv1.InfrastructureReadyCondition, clusterv1.WaitingForInfrastructureFallbackReason)
	if err != nil || !ready {
		return result, err
	}
	return result, copyInfrastructure(cluster, infra)
}

// waitForObject waits for an object that does not exist. A condition that was set while the object existed is kept.
func waitForObject(cluster *clusterv1.Cluster, ref *corev1.ObjectReference, t clusterv1.ConditionType, reason string) step.Result {
	wait := step.Wait(referenceName(ref) + " to exist")
	if before := condition.Get(cluster, t); before != nil && before.Reason != reason {
		return wait
	}
	return wait.Because(reason)
}

// copyInfrastructure copies the endpoint unless the Cluster has one, and always the failure domains.
func copyInfrastructure(cluster *clusterv1.Cluster, infra contract.InfrastructureCluster) error {
	if !cluster.Spec.ControlPlaneEndpoint.IsValid() {
		endpoint, present, err := infra.ControlPlaneEndpoint()
		if err != nil {
			return err
		}
		if !present {
			return fmt.Errorf("%s %s/%s is ready, but spec.controlPlaneEndpoint is set neither there nor on the Cluster: its provider must set it, or set it on the Cluster",
				infra.GetKind(), infra.GetNamespace(), infra.GetName())
		}
		cluster.Spec.ControlPlaneEndpoint = endpoint
	}
	domains, err := infra.FailureDomains()
	if err != nil {
		return err
	}
	cluster.Status.FailureDomains = domains
	return nil
}

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

// recordReadiness emits an event for a condition that changed.
func recordReadiness(ctx context.Context, cluster *clusterv1.Cluster, what clusterv1.ConditionType, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	step.Transition(ctx, string(what), "Cluster %s %s is now %s", cluster.Name, what, status)
}

// initialized sets ControlPlaneInitialized to True once, and never reverts it. The control plane object reports it; without
// one, the first control plane Machine with a Node counts.
func (c *Controller) initialized(ctx context.Context, s *scope) (step.Result, error) {
	if condition.IsTrue(s.Cluster, clusterv1.ControlPlaneInitializedCondition) {
		return step.Done(), nil
	}
	if s.Spec.ControlPlaneRef != nil {
		return s.initializedByObject()
	}
	machines, err := c.machines(ctx, s.Cluster)
	if err != nil {
		return step.Done(), err
	}
	for _, m := range machines {
		if isControlPlane(m) && m.Status.NodeRef != nil {
			return step.Done(), nil
		}
	}
	return step.Wait("the first control plane machine to have its status.nodeRef set").Because(clusterv1.MissingNodeRefReason), nil
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
			Because(clusterv1.WaitingForControlPlaneProviderInitializedReason), nil
	}
	return step.Done(), nil
}
