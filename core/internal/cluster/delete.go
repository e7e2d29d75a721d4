package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
)

const (
	// caBackstop is how long to wait for a CA Secret that no watch tells of, because it lacks the label.
	caBackstop = 30 * time.Second
	// childrenBackstop bounds the wait for descendants, should the event of the last one be lost.
	childrenBackstop = time.Minute
)

// deleteChildren deletes the workers, and control plane Machines that no control plane object manages, and
// waits until no descendant is left but the control plane's own Machines.
func (c *Controller) deleteChildren(ctx context.Context, s *scope) (step.Result, error) {
	return c.clear(ctx, c.Client, s.Cluster, managed(s.Cluster))
}

// managed are control plane Machines that a control plane object deletes.
func managed(cluster *clusterv1.Cluster) func(client.Object) bool {
	return func(child client.Object) bool {
		m, ok := child.(*clusterv1.Machine)
		return ok && isControlPlane(m) && cluster.Spec.ControlPlaneRef != nil
	}
}

// workersGone is deleteChildren on what the API server has: before the control plane goes, which Machines that the cache
// lacks would need to leave.
func (c *Controller) workersGone(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	return c.clear(ctx, c.Live, cluster, managed(cluster))
}

// allGone waits until the API server has no descendant at all: before the infrastructure goes, and before the Cluster does.
func (c *Controller) allGone(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	return c.clear(ctx, c.Live, cluster, func(client.Object) bool { return false })
}

// clear deletes the children of the cluster that a reader shows, and waits for all other descendants, too; those that stay do
// not count.
func (c *Controller) clear(ctx context.Context, from client.Reader, cluster *clusterv1.Cluster, stays func(client.Object) bool) (step.Result, error) {
	children, err := descendants(ctx, from, cluster)
	if err != nil {
		return step.Done(), err
	}
	left := 0
	var errs []error
	for _, child := range children {
		if stays(child) {
			continue
		}
		left++
		if !ownership.Has(child, cluster) || !child.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err := c.DeleteAny(ctx, child); err != nil {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", child, child.GetName(), err))
		}
	}
	if left > 0 {
		return step.WaitAtMost(childrenBackstop, fmt.Sprintf("%d descendants to be gone", left)), errors.Join(errs...)
	}
	return step.Done(), nil
}

// descendants are all MachinePools, MachineDeployments, MachineSets and Machines of the cluster.
func descendants(ctx context.Context, from client.Reader, cluster *clusterv1.Cluster) ([]client.Object, error) {
	var out []client.Object
	of := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
	lists := []client.ObjectList{
		&clusterv1.MachinePoolList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{},
	}
	for _, list := range lists {
		if err := from.List(ctx, list, of...); err != nil {
			return nil, fmt.Errorf("listing descendants: %w", err)
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error { // the function never fails
			if child, ok := o.(client.Object); ok {
				out = append(out, child)
			}
			return nil
		})
	}
	return out, nil
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

// deleteControlPlane deletes the control plane object, after the workers, and waits until it is gone.
func (c *Controller) deleteControlPlane(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	return c.follow.DeleteOnce(ctx, cluster.Spec.ControlPlaneRef, cluster, clusterv1.ControlPlaneReadyCondition,
		func(ctx context.Context) (step.Result, error) { return c.workersGone(ctx, cluster) })
}

// deleteInfrastructure deletes the infrastructure object, after all Machines, and waits until it is gone.
func (c *Controller) deleteInfrastructure(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	return c.follow.DeleteOnce(ctx, cluster.Spec.InfrastructureRef, cluster, clusterv1.InfrastructureReadyCondition,
		func(ctx context.Context) (step.Result, error) { return c.allGone(ctx, cluster) })
}

// finish lets the Cluster go, when nothing of it is left.
func (c *Controller) finish(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	if controllerutil.ContainsFinalizer(cluster, clusterv1.ClusterFinalizer) {
		if result, err := c.allGone(ctx, cluster); err != nil || result.Ends() {
			return result, err
		}
		controllerutil.RemoveFinalizer(cluster, clusterv1.ClusterFinalizer)
		step.Event(ctx, "Deleted", "Cluster %s has been deleted", cluster.Name)
	}
	if c.forget != nil {
		c.forget(client.ObjectKeyFromObject(cluster))
	}
	return step.Done(), nil
}
