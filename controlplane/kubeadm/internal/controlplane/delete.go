package controlplane

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/step"
)

// delete waits until the Cluster has no other Machines, whose Nodes need the control plane to be drained; then it
// deletes the control plane's Machines all at once, for there is no quorum left to keep, and lets go when none is left.
func (c *Controller) delete(ctx context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.kcp, controlplanev1.KubeadmControlPlaneFinalizer) {
		return step.Stop(), nil
	}
	workers, err := c.workers(ctx, s)
	if err != nil {
		return step.Result{}, err
	}
	if len(s.machines) == 0 && workers == 0 {
		return c.release(s), nil
	}
	condition.Set(s.kcp, condition.False(controlplanev1.ResizedCondition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingReason, ""))
	if workers > 0 {
		return step.Wait(fmt.Sprintf("%d worker Machines and MachinePools of Cluster %s to go", workers, s.key())), nil
	}
	var errs []error
	for _, m := range s.machines {
		if m.deleting() {
			continue
		}
		if err := c.Client.Delete(ctx, m.Machine, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
			step.Warning(ctx, "FailedDelete", "Cannot delete Machine %s: %s", m.Name, err)
			errs = append(errs, fmt.Errorf("deleting Machine %s: %w", m.Name, err))
		}
	}
	return step.Wait("the control plane's Machines to go"), errors.Join(errs...)
}

// release lets the control plane go.
func (c *Controller) release(s *scope) step.Result {
	controllerutil.RemoveFinalizer(s.kcp, controlplanev1.KubeadmControlPlaneFinalizer)
	c.unreachable.ended(s.kcp.UID)
	c.maintained.forget(s.kcp.UID)
	return step.Stop()
}

// workers counts the MachinePools of the Cluster, and its Machines that are not the control plane's.
func (c *Controller) workers(ctx context.Context, s *scope) (int, error) {
	of := []client.ListOption{client.InNamespace(s.kcp.Namespace), client.MatchingFields{ClusterIndex: s.cluster.Name}}
	machines := &clusterv1.MachineList{}
	if err := c.Client.List(ctx, machines, of...); err != nil {
		return 0, fmt.Errorf("listing the Machines of Cluster %s: %w", s.key(), err)
	}
	count := 0
	for _, m := range machines.Items {
		if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
			count++
		}
	}
	if !c.MachinePools {
		return count, nil
	}
	pools := &clusterv1.MachinePoolList{}
	if err := c.Client.List(ctx, pools, of...); err != nil {
		return 0, fmt.Errorf("listing the MachinePools of Cluster %s: %w", s.key(), err)
	}
	return count + len(pools.Items), nil
}
