package scale

import (
	"context"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// continueUpdates continues updates in place that were interrupted, and those whose spec has changed since they began: to the new spec if
// the extension can do that; otherwise, the Machine is replaced once the update has failed or if it has not begun. The result ends
// the reconcile if the next action must wait.
func (s Scaler) continueUpdates(ctx context.Context, state membership.State) (step.Result, error) {
	for _, m := range state.Machines {
		pending := inplace.IsPending(m.Machine)
		if !m.Updating() || m.Config == nil || m.Infrastructure == nil || pending && (len(m.Outdated) == 0 || m.Expired) {
			continue
		}
		if stale, err := s.Manager.Confirm().Decision(ctx, state.ControlPlane); stale != "" || err != nil {
			return stale.Wait().KeepCondition(), err
		}
		obstacles, err := s.Manager.UpdateInPlace(ctx, state.ControlPlane, m, s.Extensions)
		switch {
		case err != nil:
			return step.Done(), err
		case len(obstacles) == 0:
			return updating(m.Name), nil
		case !pending || updateFailed(m):
			return step.Wait("Machine " + m.Name + " to be replaced").KeepCondition(), s.Manager.Abandon(ctx, m)
		}
	}
	return step.Done(), nil
}

// updateInPlace updates a Machine in place instead of replacing it, if the extension can. Meanwhile its etcd member may not respond, so
// that etcd must have a quorum without it.
func (s Scaler) updateInPlace(ctx context.Context, state membership.State, name string) (begun bool, err error) {
	m := state.Named(name)
	if m == nil || state.StackedEtcd() && state.MayRemove(ctx, m) != "" {
		return false, nil
	}
	obstacles, err := s.Manager.UpdateInPlace(ctx, state.ControlPlane, m, s.Extensions)
	if len(obstacles) > 0 {
		ctrl.LoggerFrom(ctx).Info("Machine cannot be updated in place and is replaced", "Machine", m.Name, "obstacles",
			strings.Join(obstacles, ", "))
	}
	return err == nil && len(obstacles) == 0, err
}

// updateFailed reports whether the last attempt of an extension to update a Machine failed.
func updateFailed(m *snapshot.Machine) bool {
	c := report.Get(m, clusterv1.MachineUpdatingCondition)
	return c != nil && c.Reason == clusterv1.MachineInPlaceUpdateFailedReason
}

// updating returns the result while Machines are updated.
func updating(name string) step.Result {
	return step.Wait("Machine " + name + " to be updated in place").KeepCondition()
}
