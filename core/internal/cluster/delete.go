package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	"sigs.k8s.io/cluster-api/internal/ownership"
	"sigs.k8s.io/cluster-api/internal/step"
)

const (
	// caBackstop is how long to wait for a CA Secret that no watch tells of, because it lacks the label.
	caBackstop = 30 * time.Second
	// childrenBackstop bounds the wait for descendants, should the event of the last one be lost.
	childrenBackstop = time.Minute
)

// released waits until runtime hooks let a Cluster of a ClusterClass go.
func (c *Controller) released(_ context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	if _, ok := cluster.Annotations[runtimev1.OkToDeleteAnnotation]; c.hooks && cluster.Spec.Topology != nil && !ok {
		return step.Wait("the BeforeClusterDelete hook"), nil
	}
	return step.Done(), nil
}

// deleteChildren deletes the workers, and control plane Machines that no control plane object manages, and
// waits until no descendant is left but the control plane's own Machines.
func (c *Controller) deleteChildren(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	children, err := c.descendants(ctx, cluster)
	if err != nil {
		return step.Done(), err
	}
	left := 0
	for _, child := range children {
		if m, ok := child.(*clusterv1.Machine); ok && isControlPlane(m) && cluster.Spec.ControlPlaneRef != nil {
			continue
		}
		left++
		if !ownership.Has(child, cluster) || !child.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err := c.Client.Delete(ctx, child, client.Preconditions{UID: ptr.To(child.GetUID())}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return step.Done(), fmt.Errorf("deleting %T %s: %w", child, child.GetName(), err)
		}
	}
	if left > 0 {
		return step.WaitAtMost(childrenBackstop, fmt.Sprintf("%d descendants to be gone", left)), nil
	}
	return step.Done(), nil
}

// descendants are all MachinePools, MachineDeployments, MachineSets and Machines of the cluster.
func (c *Controller) descendants(ctx context.Context, cluster *clusterv1.Cluster) ([]client.Object, error) {
	var out []client.Object
	of := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
	pools, deployments, sets := &clusterv1.MachinePoolList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}
	for _, list := range []client.ObjectList{pools, deployments, sets} {
		if err := c.Client.List(ctx, list, of...); err != nil {
			return nil, fmt.Errorf("listing descendants: %w", err)
		}
	}
	for i := range pools.Items {
		out = append(out, &pools.Items[i])
	}
	for i := range deployments.Items {
		out = append(out, &deployments.Items[i])
	}
	for i := range sets.Items {
		out = append(out, &sets.Items[i])
	}
	machines, err := c.machines(ctx, cluster)
	for _, m := range machines {
		out = append(out, m)
	}
	return out, err
}

func (c *Controller) machines(ctx context.Context, cluster *clusterv1.Cluster) ([]*clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := c.Client.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	out := make([]*clusterv1.Machine, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// deleteControlPlane deletes the control plane object and waits until it is gone.
func (c *Controller) deleteControlPlane(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	return c.follow.Delete(ctx, cluster.Spec.ControlPlaneRef, cluster, clusterv1.ControlPlaneReadyCondition)
}

// deleteInfrastructure deletes the infrastructure object and waits until it is gone.
func (c *Controller) deleteInfrastructure(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	return c.follow.Delete(ctx, cluster.Spec.InfrastructureRef, cluster, clusterv1.InfrastructureReadyCondition)
}

// finish lets the Cluster go.
func (c *Controller) finish(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	if controllerutil.RemoveFinalizer(cluster, clusterv1.ClusterFinalizer) {
		step.Event(ctx, "Deleted", "Cluster %s has been deleted", cluster.Name)
	}
	if c.forget != nil {
		c.forget(client.ObjectKeyFromObject(cluster))
	}
	return step.Done(), nil
}
