package controlplane

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// waitForWorkers waits until all workers are deleted: draining their Nodes requires the API server.
func waitForWorkers(_ context.Context, s *scope) (step.Result, error) {
	return step.Wait(fmt.Sprintf("the workers of Cluster %s to be deleted (%d)", s.Key(), s.workers)).WithConditions(deleting()), nil
}

// cachedWorkers counts the worker Machines and MachinePools of the Cluster in the cache.
func (c *Controller) cachedWorkers(ctx context.Context, cp *snapshot.ControlPlane) (int, error) {
	inCluster := []client.ListOption{client.InNamespace(cp.KCP.Namespace), client.MatchingFields{snapshot.ClusterIndex: cp.Cluster.Name}}
	machines := &clusterv1.MachineList{}
	if err := c.Client.List(ctx, machines, inCluster...); err != nil {
		return 0, fmt.Errorf("listing the Machines of Cluster %s: %w", cp.Key(), err)
	}
	count := countWorkers(machines.Items)
	if !c.watchesPools {
		return count, nil
	}
	pools := &clusterv1.MachinePoolList{}
	if err := c.Client.List(ctx, pools, inCluster...); err != nil {
		return 0, fmt.Errorf("listing the MachinePools of Cluster %s: %w", cp.Key(), err)
	}
	return count + len(pools.Items), nil
}

// deleting returns the condition of a control plane that waits for Machines to be deleted.
func deleting() clusterv1.Condition {
	return condition.False(controlplanev1.ResizedV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingV1Beta1Reason, "")
}

// liveWorkers counts worker Machines and MachinePools in the API server.
func (c *Controller) liveWorkers(ctx context.Context, cp *snapshot.ControlPlane) (int, error) {
	machines, err := c.confirm().ListMachines(ctx, cp)
	if err != nil {
		return 0, err
	}
	pools, err := c.livePools(ctx, cp)
	return countWorkers(machines) + pools, err
}

// livePools counts the MachinePools of the Cluster in the API server. They may lack the label of the Cluster, so it lists all.
func (c *Controller) livePools(ctx context.Context, cp *snapshot.ControlPlane) (int, error) {
	if !c.machinePools {
		return 0, nil
	}
	pools := &clusterv1.MachinePoolList{}
	if err := c.confirm().List(ctx, pools, client.InNamespace(cp.KCP.Namespace)); err != nil {
		return 0, fmt.Errorf("listing the MachinePools of namespace %s: %w", cp.KCP.Namespace, err)
	}
	count := 0
	for i := range pools.Items {
		if pools.Items[i].Spec.ClusterName == cp.Cluster.Name {
			count++
		}
	}
	return count, nil
}

// countWorkers counts the Machines that are not control plane Machines.
func countWorkers(machines []clusterv1.Machine) int {
	count := 0
	for i := range machines {
		if _, controlPlane := machines[i].Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
			count++
		}
	}
	return count
}
