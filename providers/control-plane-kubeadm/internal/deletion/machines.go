package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/machines"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Machines deletes all Machines and removes our hook from them: etcd needs no quorum any more. It checks live that there are no
// workers before it deletes the first one.
func (d Deleter) Machines(ctx context.Context, cp *snapshot.ControlPlane) (step.Result, error) {
	if len(cp.Machines) == 0 {
		return step.Done(), nil
	}
	if controllerutil.ContainsFinalizer(cp.KCP, metav1.FinalizerOrphanDependents) {
		return step.Wait("the garbage collector to orphan the Machines of the control plane").WithConditions(Deleting()), nil
	}
	result := step.Wait("the Machines of the control plane to be deleted").WithConditions(Deleting())
	if !slices.ContainsFunc(cp.Machines, func(m *snapshot.Machine) bool { return membership.HasHook(m.Machine) || !m.Deleting() }) {
		return result, nil
	}
	workers, err := d.liveWorkers(ctx, cp)
	if err != nil {
		return step.Done().WithConditions(Deleting()), err
	}
	if workers > 0 {
		return snapshot.Stale("the workers of Cluster " + cp.Key().String()).Wait().WithConditions(Deleting()), nil
	}
	return result, d.deleteAll(ctx, cp)
}

func (d Deleter) deleteAll(ctx context.Context, cp *snapshot.ControlPlane) error {
	var (
		errs []error
		last *snapshot.Machine
	)
	for _, m := range cp.Machines {
		if err := d.deleteMachine(ctx, cp, m); err != nil {
			if !step.IsStale(err) {
				step.Warning(ctx, "FailedDelete", "Cannot delete Machine %s: %s", m.Name, err)
			}
			errs = append(errs, err)
		} else if metav1.IsControlledBy(m.Machine, cp.KCP) {
			last = m
		}
	}
	if last != nil { // If the cache shows this deletion, it shows all, and the next reconcile reads nothing live.
		machines.AwaitDeletion(ctx, d.Client, last)
	}
	return errors.Join(errs...)
}

// deleteMachine deletes a Machine, unless it has changed since it was read: it may have another controller now.
func (d Deleter) deleteMachine(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine) error {
	if err := membership.RemoveHook(ctx, d.Outside, m.Machine); err != nil || m.Deleting() || !metav1.IsControlledBy(m.Machine, cp.KCP) {
		return err
	}
	if err := d.Delete(ctx, m.Machine); err != nil {
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	return nil
}
