package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// childrenBackstop bounds the wait for descendants, in case the event of the last one is lost.
const childrenBackstop = time.Minute

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
func (c *Controller) deleteAndWait(
	ctx context.Context, from client.Reader, cluster *clusterv1.Cluster, excluded func(client.Object) bool,
) (step.Result, error) {
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
