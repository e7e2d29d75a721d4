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
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// caBackstop bounds the wait for a CA Secret: one without the cluster name label triggers no reconcile.
	caBackstop = 30 * time.Second
	// childrenBackstop bounds the wait for descendants, in case the event of the last one is lost.
	childrenBackstop = time.Minute
)

// held waits until runtime extensions have allowed the deletion. The topology controller calls them, and records the answer; without the
// record, extensions may still be answering. An extension that is removed later takes nothing back.
func (c *Controller) held(_ context.Context, s *scope) (step.Result, error) {
	if _, ok := s.Annotations[runtimev1.OkToDeleteAnnotation]; ok || !c.hooks || s.Spec.Topology == nil {
		return step.Done(), nil
	}
	return step.Wait("runtime extensions to allow the deletion"), nil
}

// deleteChildren deletes the workers, and control plane Machines without control plane object, and waits until no descendants
// are left except the Machines of the control plane object.
func (c *Controller) deleteChildren(ctx context.Context, s *scope) (step.Result, error) {
	return c.deleteAndWait(ctx, c.Client, s.Cluster, managed(s.Cluster))
}

// managed selects the Machines that the control plane object deletes.
func managed(cluster *clusterv1.Cluster) func(client.Object) bool {
	return func(child client.Object) bool {
		m, ok := child.(*clusterv1.Machine)
		return ok && isControlPlane(m) && cluster.Spec.ControlPlaneRef != nil
	}
}

// workersGone is deleteChildren with reads from the API server. It runs before the control plane is deleted: Machines that the
// cache does not have yet need the control plane for their own deletion.
func (c *Controller) workersGone(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	return c.deleteAndWait(ctx, c.Live, cluster, managed(cluster))
}

// allGone deletes all remaining descendants in the API server and waits for them. It runs before the infrastructure is deleted,
// and before the finalizer of the Cluster is removed.
func (c *Controller) allGone(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	return c.deleteAndWait(ctx, c.Live, cluster, func(client.Object) bool { return false })
}

// deleteAndWait deletes the direct children of the Cluster that a reader returns, and waits until all descendants are gone.
// It ignores the ones that excluded selects.
func (c *Controller) deleteAndWait(ctx context.Context, from client.Reader, cluster *clusterv1.Cluster, excluded func(client.Object) bool) (step.Result, error) {
	children, err := descendants(ctx, from, cluster)
	if err != nil {
		return step.Done(), err
	}
	left := 0
	var errs []error
	for _, child := range children {
		if excluded(child) {
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
		return step.WaitAtMost(childrenBackstop, fmt.Sprintf("%d descendants to be deleted", left)), errors.Join(errs...)
	}
	return step.Done(), nil
}

// descendants lists all MachinePools, MachineDeployments, MachineSets and Machines of the Cluster.
func descendants(ctx context.Context, from client.Reader, cluster *clusterv1.Cluster) ([]client.Object, error) {
	var out []client.Object
	lists := []client.ObjectList{
		&clusterv1.MachinePoolList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{},
	}
	for _, list := range lists {
		if err := from.List(ctx, list, ownership.InCluster(cluster.Namespace, cluster.Name)); err != nil {
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
	if err := c.Client.List(ctx, list, ownership.InCluster(cluster.Namespace, cluster.Name)); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	out := make([]*clusterv1.Machine, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// deleteControlPlane deletes the control plane object after the workers, and waits until it is gone.
func (c *Controller) deleteControlPlane(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	return c.follow.DeleteOnce(ctx, cluster.Spec.ControlPlaneRef, cluster, clusterv1.ControlPlaneReadyCondition,
		func(ctx context.Context) (step.Result, error) { return c.workersGone(ctx, cluster) })
}

// deleteInfrastructure deletes the infrastructure object after all Machines, and waits until it is gone.
func (c *Controller) deleteInfrastructure(ctx context.Context, s *scope) (step.Result, error) {
	cluster := s.Cluster
	return c.follow.DeleteOnce(ctx, cluster.Spec.InfrastructureRef, cluster, clusterv1.InfrastructureReadyCondition,
		func(ctx context.Context) (step.Result, error) { return c.allGone(ctx, cluster) })
}

// finish removes the finalizer once no descendants are left.
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
