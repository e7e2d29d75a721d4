package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// PreTerminate handles Machines that are being deleted, no matter by whom: when a deletion has reached our hook, it removes the
// etcd member and then the hook.
func (r *Remover) PreTerminate(ctx context.Context, state State) (step.Result, error) {
	var (
		result step.Result
		errs   []error
	)
	for _, m := range state.deleting() {
		why, err := r.release(ctx, state, m)
		if err != nil {
			errs = append(errs, fmt.Errorf("machine %s, which is being deleted: %w", m.Name, err))
		}
		if why != "" {
			result = step.Again(health.EtcdBackstop)
		}
		errs = append(errs, r.explain(ctx, state, m, why, err))
	}
	return result, errors.Join(errs...)
}

// deleting returns the Machines that are being deleted, in the order of their deletion timestamps.
func (s State) deleting() []*snapshot.Machine {
	machines := slices.DeleteFunc(slices.Clone(s.Machines), func(m *snapshot.Machine) bool { return !m.Deleting() })
	slices.SortStableFunc(machines, func(a, b *snapshot.Machine) int { return a.DeletionTimestamp.Compare(b.DeletionTimestamp.Time) })
	return machines
}

// unreachable is what removals wait for while there is no connection.
const unreachable = "the workload cluster to be reachable"

// release removes the etcd member, or makes sure that the machine gets none, and then our hook. It returns what that waits for.
func (r *Remover) release(ctx context.Context, state State, m *snapshot.Machine) (why string, err error) {
	switch {
	case !state.StackedEtcd():
		return "", RemoveHook(ctx, r.Clients, m.Machine)
	case !HasHook(m.Machine):
		return r.removeUnheld(ctx, state, m)
	case !HookReached(m.Machine):
		return "", nil
	case !state.Initialized():
		// There is no etcd yet that could lose a member. If that is wrong, the cluster is lost.
		if stale, err := r.confirm().Uninitialized(ctx, state.ControlPlane); stale != "" || err != nil {
			return "", err // The event that the cache lacks triggers the next reconcile.
		}
		return "", RemoveHook(ctx, r.Clients, m.Machine)
	case state.Observed == nil:
		return unreachable, nil
	}
	if why, err := r.remove(ctx, state, m); why != "" || err != nil {
		return why, err
	}
	if why, err := r.exclude(ctx, state, m); why != "" || err != nil {
		return why, err
	}
	return "", RemoveHook(ctx, r.Clients, m.Machine)
}

// removeUnheld removes the member of a Machine that is being deleted without our hook, because it was deleted before this
// manager was installed, or because a user removed the hook: its infrastructure may be deleted at any time.
func (r *Remover) removeUnheld(ctx context.Context, state State, m *snapshot.Machine) (why string, err error) {
	if state.Observed == nil {
		return "", nil
	}
	if members := state.Observed.EtcdCluster().Members; len(members) < 2 || !slices.Contains(members, m.Node()) {
		return "", nil
	}
	return r.remove(ctx, state, m)
}

// removalFailed is the beginning of messages about failures.
const removalFailed = "The Machine cannot be released: "

// announcement is the text of the event about a failure.
func announcement(name string, failure error) string {
	return fmt.Sprintf("Machine %s is held until its etcd member is removed, which failed and is retried: %s. To delete the Machine "+
		"without removing its etcd member, remove the annotation %s from it",
		name, condition.Brief(failure.Error()), controlplanev1.PreTerminateHookCleanupAnnotation)
}

// explain reports in a condition of the Machine what its deletion waits for, and in an event what failed. To wait is normal: the last
// Machine is held until another one has joined. A connection that is missing for a moment is not reported.
func (r *Remover) explain(ctx context.Context, state State, m *snapshot.Machine, why string, failure error) error {
	if why == unreachable && !state.Lost || failure != nil && step.IsStale(failure) {
		return nil
	}
	message := ""
	switch {
	case failure != nil:
		message = removalFailed + condition.Brief(failure.Error())
	case why != "":
		message = "The etcd member cannot be removed yet. Waiting for " + why
	}
	reported := condition.False(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition, clusterv1.ConditionSeverityInfo,
		clusterv1.DeletingV1Beta1Reason, "%s", message)
	current := condition.Get(m, reported.Type)
	if current == nil && message == "" || current != nil && condition.SameState(*current, reported) {
		return nil
	}
	if failure != nil && current != nil && strings.HasPrefix(current.Message, removalFailed) {
		return nil // The text of the same failure may differ each time. The log has all of them.
	}
	if failure != nil {
		step.Warning(ctx, "FailedScaleDown", "%s", announcement(m.Name, failure))
	}
	return r.SetConditions(ctx, m.Machine, reported)
}
