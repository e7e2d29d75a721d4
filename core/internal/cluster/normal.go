package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/reference"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/step"
)

// finalizer makes sure that deletion passes through us.
func (c *Controller) finalizer(_ context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	if !started(cluster) {
		return step.Stop(), nil
	}
	if controllerutil.AddFinalizer(cluster, clusterv1.ClusterFinalizer) {
		return step.Checkpoint(), nil
	}
	return step.Done(), nil
}

// infrastructure copies what the infrastructure object says.
func (c *Controller) infrastructure(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	ref := cluster.Spec.InfrastructureRef
	if ref == nil {
		return step.Done(), nil
	}
	obj, err := c.follow.Follow(ctx, ref, cluster.Namespace)
	if err != nil {
		return step.Done(), err
	}
	if obj == nil {
		return step.Wait(referenceName(ref) + " to exist"), nil
	}
	if err := c.follow.Own(ctx, obj, cluster, cluster.Name); err != nil {
		return step.Done(), err
	}
	infra := contract.InfrastructureClusterOf(obj)
	if err := reference.CopyFailure(infra.Object, &cluster.Status.FailureReason, &cluster.Status.FailureMessage); err != nil {
		return step.Done(), err
	}
	ready, err := infra.Ready()
	if err != nil {
		return step.Done(), err
	}
	if err := reference.Mirror(cluster, clusterv1.InfrastructureReadyCondition, infra.Object, condition.Fallback(ready, clusterv1.WaitingForInfrastructureFallbackReason)); err != nil {
		return step.Done(), err
	}
	if ready != cluster.Status.InfrastructureReady {
		announce(ctx, cluster, clusterv1.InfrastructureReadyCondition, ready)
	}
	cluster.Status.InfrastructureReady = ready
	if !ready {
		return step.Wait(referenceName(ref) + " to be ready"), nil
	}
	return step.Done(), copyInfrastructure(cluster, infra)
}

// copyInfrastructure takes over the endpoint, once, and the failure domains, always.
func copyInfrastructure(cluster *clusterv1.Cluster, infra contract.InfrastructureCluster) error {
	if !cluster.Spec.ControlPlaneEndpoint.IsValid() {
		endpoint, present, err := infra.ControlPlaneEndpoint()
		if err != nil {
			return err
		}
		if !present {
			return fmt.Errorf("%s %s/%s is ready but has no spec.controlPlaneEndpoint, and the Cluster has none either: its provider must set it, or you on the Cluster",
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

// controlPlane copies what the control plane object says.
func (c *Controller) controlPlane(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	ref := cluster.Spec.ControlPlaneRef
	if ref == nil {
		return step.Done(), nil
	}
	obj, err := c.follow.Follow(ctx, ref, cluster.Namespace)
	if err != nil {
		return step.Done(), err
	}
	if obj == nil {
		expectControlPlane(cluster)
		return step.Wait(referenceName(ref) + " to exist"), nil
	}
	if err := c.follow.Own(ctx, obj, cluster, cluster.Name); err != nil {
		return step.Done(), err
	}
	plane := contract.ControlPlaneOf(obj)
	if err := reference.CopyFailure(plane.Object, &cluster.Status.FailureReason, &cluster.Status.FailureMessage); err != nil {
		return step.Done(), err
	}
	ready, err := plane.Ready()
	if err != nil {
		return step.Done(), err
	}
	if err := reference.Mirror(cluster, clusterv1.ControlPlaneReadyCondition, plane.Object, condition.Fallback(ready, clusterv1.WaitingForControlPlaneFallbackReason)); err != nil {
		return step.Done(), err
	}
	if ready != cluster.Status.ControlPlaneReady {
		announce(ctx, cluster, clusterv1.ControlPlaneReadyCondition, ready)
	}
	cluster.Status.ControlPlaneReady = ready
	return step.Done(), setInitialized(cluster, plane)
}

// announce tells of what became ready, or is not any more.
func announce(ctx context.Context, cluster *clusterv1.Cluster, what clusterv1.ConditionType, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	step.Transition(ctx, string(what), "Cluster %s %s is now %s", cluster.Name, what, status)
}

// expectControlPlane keeps a Cluster from being Ready with its infrastructure alone, while its control plane
// object is about to be made. What is said of one that was there before stays.
func expectControlPlane(cluster *clusterv1.Cluster) {
	if !condition.Has(cluster, clusterv1.ControlPlaneReadyCondition) {
		fallback := condition.Fallback(false, clusterv1.WaitingForControlPlaneFallbackReason)
		fallback.Type = clusterv1.ControlPlaneReadyCondition
		condition.Set(cluster, fallback)
	}
	if !condition.Has(cluster, clusterv1.ControlPlaneInitializedCondition) {
		condition.Set(cluster, uninitialized())
	}
}

// setInitialized records that the control plane has been initialized; it is never taken back.
func setInitialized(cluster *clusterv1.Cluster, plane contract.ControlPlane) error {
	if condition.IsTrue(cluster, clusterv1.ControlPlaneInitializedCondition) {
		return nil
	}
	initialized, err := plane.Initialized()
	if err != nil {
		return err
	}
	if initialized {
		condition.Set(cluster, condition.True(clusterv1.ControlPlaneInitializedCondition))
		return nil
	}
	condition.Set(cluster, uninitialized())
	return nil
}

func uninitialized() clusterv1.Condition {
	return condition.False(clusterv1.ControlPlaneInitializedCondition, clusterv1.ConditionSeverityInfo,
		clusterv1.WaitingForControlPlaneProviderInitializedReason, "Waiting for control plane provider to indicate the control plane has been initialized")
}

// initialized decides, for a Cluster without control plane object, by its control plane Machines: the first
// that has a Node has initialized the control plane.
func (c *Controller) initialized(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	if cluster.Spec.ControlPlaneRef != nil || condition.IsTrue(cluster, clusterv1.ControlPlaneInitializedCondition) {
		return step.Done(), nil
	}
	machines, err := c.machines(ctx, cluster)
	if err != nil {
		return step.Done(), err
	}
	for _, m := range machines {
		if isControlPlane(m) && m.Status.NodeRef != nil {
			condition.Set(cluster, condition.True(clusterv1.ControlPlaneInitializedCondition))
			return step.Done(), nil
		}
	}
	condition.Set(cluster, condition.False(clusterv1.ControlPlaneInitializedCondition, clusterv1.ConditionSeverityInfo,
		clusterv1.MissingNodeRefReason, "Waiting for the first control plane machine to have its status.nodeRef set"))
	return step.Done(), nil
}
