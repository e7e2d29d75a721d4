package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// RemoveOrphanedMembers removes etcd members that have neither a Machine nor a Node.
func (r *Remover) RemoveOrphanedMembers(ctx context.Context, state State) (step.Result, error) {
	if len(state.Machines) == 0 {
		return step.Done(), nil
	}
	orphaned := slices.DeleteFunc(state.OrphanedMembers(),
		func(name string) bool { return state.Observed.EtcdCluster().MayRemove(name) != "" })
	if len(orphaned) == 0 {
		return step.Done(), nil
	}
	// A Machine that the cache does not show yet may have a member.
	if stale, err := r.confirm().Machines(ctx, state.ControlPlane); err != nil || stale != "" {
		return step.Done(), err
	}
	if err := r.unheld(ctx, state.ControlPlane); err != nil {
		return step.Done(), err
	}
	var errs []error
	for _, name := range orphaned {
		errs = append(errs, state.removeOrphanedMember(ctx, name))
	}
	return step.Done(), errors.Join(errs...)
}

func (s State) removeOrphanedMember(ctx context.Context, name string) error {
	cluster := s.Observed.EtcdCluster()
	if cluster.MayRemove(name) != "" {
		return nil // because others were removed before it
	}
	var err error
	if name == "" {
		err = s.Workload.RemoveUnstartedEtcdMembers(ctx, cluster.Healthy)
	} else {
		err = s.Workload.RemoveEtcdMember(ctx, name, cluster.HealthyWithout(name))
	}
	if err != nil {
		return fmt.Errorf("removing etcd member %q, which has no Machine: %w", name, err)
	}
	s.Observed.MemberRemoved(name)
	return nil
}
