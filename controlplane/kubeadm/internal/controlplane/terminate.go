package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// terminate lets Machines go that are being deleted, by whomever: once the deletion of one has come to our hook, its
// member leaves etcd, and then the hook is removed. The last member stays, and its Machine with it, until another one
// has joined.
func (c *Controller) terminate(ctx context.Context, s *scope) (step.Result, error) {
	var (
		result step.Result
		errs   []error
	)
	for _, m := range s.terminating() {
		why, err := c.letGo(ctx, s, m)
		if err != nil {
			errs = append(errs, fmt.Errorf("machine %s, which is being deleted: %w", m.Name, err))
		}
		if why != "" {
			result = step.Again(etcdBackstop)
		}
		errs = append(errs, c.explain(ctx, s, m, why, err))
	}
	return result, errors.Join(errs...)
}

// terminating are the Machines that are being deleted, in the order in which that began.
func (s *scope) terminating() []*machine {
	machines := slices.DeleteFunc(slices.Clone(s.machines), func(m *machine) bool { return !m.deleting() })
	slices.SortStableFunc(machines, func(a, b *machine) int { return a.DeletionTimestamp.Compare(b.DeletionTimestamp.Time) })
	return machines
}

// letGo takes the Machine's member out of etcd and removes our hook, or says what that waits for.
func (c *Controller) letGo(ctx context.Context, s *scope, m *machine) (why string, err error) {
	switch {
	case !s.stacked():
		return "", c.unhook(ctx, m.Machine)
	case !hooked(m.Machine):
		return c.leaveUnhooked(ctx, s, m)
	case !awaitsHook(m.Machine):
		return "", nil
	case !s.begun():
		// There is no etcd yet that could lose a member. Being wrong would cost the cluster.
		if stale, err := c.confirmNew(ctx, s); stale != "" || err != nil {
			return "", err // The event of what is stale comes.
		}
		return "", c.unhook(ctx, m.Machine)
	case s.observed == nil:
		return unreachableCluster, nil
	}
	if why, err := c.leaveEtcd(ctx, s, m); why != "" || err != nil {
		return why, err
	}
	s.observed.forget(m.node())
	return "", c.unhook(ctx, m.Machine)
}

// unreachableCluster is what terminate waits for while there is no connection.
const unreachableCluster = "the workload cluster to be reachable"

// leaveUnhooked is for a Machine without our hook, because it was deleted before this manager took over, or because
// somebody removed it: its infrastructure may go at any time, so its member leaves now, if it can.
func (c *Controller) leaveUnhooked(ctx context.Context, s *scope, m *machine) (why string, err error) {
	if s.observed == nil {
		return "", nil
	}
	if members := s.observed.etcd().members; len(members) < 2 || !slices.Contains(members, m.node()) {
		return "", nil
	}
	if why, err := c.leaveEtcd(ctx, s, m); why != "" || err != nil {
		return why, err
	}
	s.observed.forget(m.node())
	return "", nil
}

// cannotLetGo is how the statement of a failure begins.
const cannotLetGo = "The Machine cannot be let go: "

// explain states on the Machine what its deletion waits for, and announces it once on the control plane. While the
// connection is away for a moment only, nothing is said.
func (c *Controller) explain(ctx context.Context, s *scope, m *machine, why string, failure error) error {
	if why == unreachableCluster && !s.lost || step.IsStale(failure) && failure != nil {
		return nil
	}
	message := ""
	switch {
	case failure != nil:
		message = cannotLetGo + brief(failure.Error())
	case why != "":
		message = "The etcd member stays, and the Machine with it. Waiting for " + why
	}
	stated := condition.False(controlplanev1.MachineEtcdMemberHealthyCondition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingReason, "%s", message)
	current := condition.Get(m, stated.Type)
	if current == nil && message == "" || current != nil && condition.SameState(*current, stated) {
		return nil
	}
	if failure != nil && current != nil && strings.HasPrefix(current.Message, cannotLetGo) {
		return nil // The same failure may come in other words each time; the log has them all.
	}
	if message != "" {
		step.Warning(ctx, "FailedScaleDown", "Machine %s is being deleted. %s. To give the member up all the same, remove annotation %s from the Machine",
			m.Name, message, controlplanev1.PreTerminateHookCleanupAnnotation)
	}
	before := m.Status.Conditions.DeepCopy()
	condition.Set(m, stated)
	return c.SaveConditions(ctx, m.Machine, before)
}
