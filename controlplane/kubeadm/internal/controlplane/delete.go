package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
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
		return c.release(ctx, s)
	}
	condition.Set(s.kcp, condition.False(controlplanev1.ResizedCondition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingReason, ""))
	if workers > 0 {
		gone := func(context.Context, *scope) (step.Result, error) {
			return step.Wait(fmt.Sprintf("%d worker Machines and MachinePools of Cluster %s to go", workers, s.key())), nil
		}
		return step.Run(ctx, s, step.All(step.Do("attend", c.attend), step.Do("workers", gone)))
	}
	if controllerutil.ContainsFinalizer(s.kcp, metav1.FinalizerOrphanDependents) {
		return step.Wait("the garbage collector to release the control plane's Machines"), nil
	}
	return c.endMachines(ctx, s)
}

// attend takes care of Machines that others delete while workers are left: members leave etcd one by one, the last one
// stays. A cluster that was never initialised has neither members nor a drain; its Machines wait for the workers to go.
func (c *Controller) attend(ctx context.Context, s *scope) (step.Result, error) {
	if !s.begun() || !slices.ContainsFunc(s.machines, (*machine).deleting) {
		return step.Done(), nil
	}
	return step.Run(ctx, s, step.Do("connect", c.connect), step.Do("look", look), step.Do("terminate", c.terminate))
}

// look observes the workload cluster, if there is a connection.
func look(ctx context.Context, s *scope) (step.Result, error) {
	if s.workload == nil {
		return step.Done(), nil
	}
	observed, err := observe(ctx, s)
	s.observed = observed
	return step.Done(), err
}

// endMachines deletes the Machines. No quorum is kept any more, so our hook does not hold them up. Nothing brings the
// API server back that workers need to be drained, so a live list confirms that none is left before the first one goes.
func (c *Controller) endMachines(ctx context.Context, s *scope) (step.Result, error) {
	result := step.Wait("the control plane's Machines to go")
	if !slices.ContainsFunc(s.machines, func(m *machine) bool { return hooked(m.Machine) || !m.deleting() }) {
		return result, nil
	}
	left, err := c.liveWorkers(ctx, s)
	if err != nil {
		return step.Result{}, err
	}
	if left > 0 {
		return catchUp(fmt.Sprintf("%d worker Machines and MachinePools of Cluster %s", left, s.key())), nil
	}
	var (
		errs []error
		last *machine
	)
	for _, m := range s.machines {
		if err := c.endMachine(ctx, s, m); err != nil {
			if !step.IsStale(err) {
				step.Warning(ctx, "FailedDelete", "Cannot delete Machine %s: %s", m.Name, err)
			}
			errs = append(errs, err)
		} else if metav1.IsControlledBy(m.Machine, s.kcp) {
			last = m
		}
	}
	if last != nil { // Once the cache shows this one it shows all, and nothing has to be confirmed again.
		c.awaitDeleting(ctx, last)
	}
	return result, errors.Join(errs...)
}

// endMachine deletes a Machine only as it was read: it may have been given to another owner since.
func (c *Controller) endMachine(ctx context.Context, s *scope, m *machine) error {
	if err := c.unhook(ctx, m.Machine); err != nil || m.deleting() || !metav1.IsControlledBy(m.Machine, s.kcp) {
		return err
	}
	if err := c.Delete(ctx, m.Machine); err != nil {
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	return nil
}

// release lets the control plane go, if the API server has no Machine of it, and no worker or MachinePool: the cache may not
// show one yet. Machines that were left to nobody lose our hook, which nobody else would remove.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	live, err := c.liveMachines(ctx, s)
	if err != nil {
		return step.Result{}, err
	}
	var errs []error
	left := 0
	for i := range live {
		m := &live[i]
		_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
		switch controller := metav1.GetControllerOf(m); {
		case !controlPlane || controller != nil && controller.UID == s.kcp.UID:
			left++
		case controller == nil:
			errs = append(errs, c.unhook(ctx, m))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return step.Result{}, err
	}
	pools, err := c.livePools(ctx, s)
	if err != nil {
		return step.Result{}, err
	}
	if left += pools; left > 0 {
		return catchUp(fmt.Sprintf("%d Machines and MachinePools of Cluster %s", left, s.key())), nil
	}
	controllerutil.RemoveFinalizer(s.kcp, controlplanev1.KubeadmControlPlaneFinalizer)
	c.unreachable.ended(s.kcp.UID)
	c.pauses.forget(s.kcp.UID)
	c.maintained.forget(s.kcp.UID)
	c.kubeconfigs.forget(s.kcp.UID)
	return step.Stop(), nil
}

// livePools counts the MachinePools that the API server has of the Cluster. They need not have a label that tells it.
func (c *Controller) livePools(ctx context.Context, s *scope) (int, error) {
	if !c.MachinePools {
		return 0, nil
	}
	pools := &clusterv1.MachinePoolList{}
	if err := c.Live.List(ctx, pools, client.InNamespace(s.kcp.Namespace)); err != nil {
		return 0, fmt.Errorf("listing the MachinePools of namespace %s: %w", s.kcp.Namespace, err)
	}
	count := 0
	for i := range pools.Items {
		if pools.Items[i].Spec.ClusterName == s.cluster.Name {
			count++
		}
	}
	return count, nil
}

// workers counts the MachinePools of the Cluster, and its Machines that are not the control plane's.
func (c *Controller) workers(ctx context.Context, s *scope) (int, error) {
	of := []client.ListOption{client.InNamespace(s.kcp.Namespace), client.MatchingFields{ClusterIndex: s.cluster.Name}}
	machines := &clusterv1.MachineList{}
	if err := c.Client.List(ctx, machines, of...); err != nil {
		return 0, fmt.Errorf("listing the Machines of Cluster %s: %w", s.key(), err)
	}
	count := countWorkers(machines.Items)
	if !c.MachinePools {
		return count, nil
	}
	pools := &clusterv1.MachinePoolList{}
	if err := c.Client.List(ctx, pools, of...); err != nil {
		return 0, fmt.Errorf("listing the MachinePools of Cluster %s: %w", s.key(), err)
	}
	return count + len(pools.Items), nil
}

// liveWorkers counts workers as the API server has them.
func (c *Controller) liveWorkers(ctx context.Context, s *scope) (int, error) {
	machines, err := c.liveMachines(ctx, s)
	if err != nil {
		return 0, err
	}
	pools, err := c.livePools(ctx, s)
	return countWorkers(machines) + pools, err
}

// countWorkers counts the Machines that are not a control plane's.
func countWorkers(machines []clusterv1.Machine) int {
	count := 0
	for i := range machines {
		if _, controlPlane := machines[i].Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
			count++
		}
	}
	return count
}
