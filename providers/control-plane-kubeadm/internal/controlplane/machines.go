package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteMachines deletes all Machines and removes our hook from them: etcd no longer needs a quorum. It checks live that there are no
// workers before it deletes the first one.
func (c *Controller) deleteMachines(ctx context.Context, s *scope) (step.Result, error) {
	if len(s.Machines) == 0 {
		return step.Done(), nil
	}
	if controllerutil.ContainsFinalizer(s.KCP, metav1.FinalizerOrphanDependents) {
		return step.Wait("the garbage collector to orphan the Machines of the control plane").WithConditions(deleting()), nil
	}
	result := step.Wait("the Machines of the control plane to be deleted").WithConditions(deleting())
	if !slices.ContainsFunc(s.Machines, func(m *snapshot.Machine) bool { return membership.HasHook(m.Machine) || !m.Deleting() }) {
		return result, nil
	}
	workers, err := c.liveWorkers(ctx, s.ControlPlane)
	if err != nil {
		return step.Done().WithConditions(deleting()), err
	}
	if workers > 0 {
		return snapshot.Stale("the workers of Cluster " + s.Key().String()).Wait().WithConditions(deleting()), nil
	}
	return result, c.deleteAll(ctx, s.ControlPlane)
}

func (c *Controller) deleteAll(ctx context.Context, cp *snapshot.ControlPlane) error {
	var (
		errs []error
		last *snapshot.Machine
	)
	for _, m := range cp.Machines {
		if err := c.deleteMachine(ctx, cp, m); err != nil {
			if !step.IsStale(err) {
				step.Warning(ctx, "FailedDelete", "Cannot delete Machine %s: %s", m.Name, err)
			}
			errs = append(errs, err)
		} else if metav1.IsControlledBy(m.Machine, cp.KCP) {
			last = m
		}
	}
	if last != nil { // If the cache shows this deletion, it shows all, and the next reconcile reads nothing live.
		step.AwaitDeletion(ctx, c.Client, last.Machine)
	}
	return errors.Join(errs...)
}

// deleteMachine deletes a Machine, unless it has changed since it was read: it may have another controller now.
func (c *Controller) deleteMachine(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine) error {
	if err := membership.RemoveHook(ctx, c.Clients, m.Machine); err != nil || m.Deleting() || !metav1.IsControlledBy(m.Machine, cp.KCP) {
		return err
	}
	if err := c.Delete(ctx, m.Machine); err != nil {
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	return nil
}
