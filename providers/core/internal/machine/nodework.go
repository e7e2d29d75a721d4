package machine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// decide determines whether to drain the Node, see nodeWorkAllowed.
func (c *Controller) decide(ctx context.Context, s *scope) (step.Result, error) {
	allowed, err := c.nodeWorkAllowed(ctx, s)
	s.nodeWork = allowed
	return step.Done(), err
}

// nodeWorkAllowed returns false if there is no Node, or if the Cluster, its control plane or the last control plane Machine is
// being deleted: then draining is pointless. A skipped drain cannot be repeated, so an object that is only missing
// in the cache is read from the API server.
func (c *Controller) nodeWorkAllowed(ctx context.Context, s *scope) (bool, error) {
	if s.machine.Status.NodeRef == nil {
		return false, nil
	}
	if s.cluster == nil {
		live := &clusterv1.Cluster{}
		if err := c.Live.Get(ctx, s.key(), live); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		s.cluster = live
	}
	if !s.cluster.DeletionTimestamp.IsZero() {
		return false, nil
	}
	if ref := s.cluster.Spec.ControlPlaneRef; ref != nil {
		obj, err := c.follow.Reader.Get(ctx, ref, s.cluster.Namespace)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return false, err
		case !obj.GetDeletionTimestamp().IsZero():
			return false, nil
		default:
			if external, err := contract.ControlPlaneOf(obj).ExternallyManaged(); err != nil || external {
				return external, err
			}
		}
	}
	if found, err := hasControlPlaneMachine(ctx, c.Client, s); found || err != nil {
		return found, err
	}
	return hasControlPlaneMachine(ctx, c.Live, s)
}

// hasControlPlaneMachine reports whether the Cluster has a control plane Machine that is not being deleted.
func hasControlPlaneMachine(ctx context.Context, from client.Reader, s *scope) (bool, error) {
	list := &clusterv1.MachineList{}
	err := from.List(ctx, list, ownership.InCluster(s.cluster.Namespace, s.cluster.Name), client.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return false, fmt.Errorf("listing control plane Machines: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			return true, nil
		}
	}
	return false, nil
}
