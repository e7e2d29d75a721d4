package membership

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

// NoSuccessor is what a removal waits for if no other member can become the leader.
const NoSuccessor = "a healthy etcd member that can become the leader"

// noResponse is what a removal waits for if no member responds.
const noResponse = "an etcd member that responds"

// MayRemove queries the members, and returns what must happen before the member of the Machine can be removed. It is empty if
// the member can be removed.
func (s State) MayRemove(ctx context.Context, m *snapshot.Machine) string {
	_, why := s.toRemove(s.query(ctx), m)
	return why
}

// remove removes the member of the Machine, or returns what must happen first. If the Machine has no Node, its member is found
// by elimination, after a check against the API server: a Machine that the cache does not show yet has a member, too.
func (r *Remover) remove(ctx context.Context, state State, m *snapshot.Machine) (why string, err error) {
	cluster := state.query(ctx)
	names, why := state.toRemove(cluster, m)
	if why != "" {
		return why, nil
	}
	if m.Node() == "" {
		if stale, err := r.confirm().Machines(ctx, state.ControlPlane); stale != "" || err != nil {
			return "", cmp.Or(err, stale.Err())
		}
	}
	if err := r.unheld(ctx, state.ControlPlane); err != nil {
		return "", err
	}
	if state.mayJoin(m) && slices.ContainsFunc(names, func(name string) bool { return slices.Contains(cluster.Members, name) }) {
		r.joins.forget(state.KCP.UID, m.UID) // kubeadm was joining, and may try again.
	}
	for _, name := range names {
		if err := state.removeMember(ctx, cluster, m, name); err != nil {
			return "", err
		}
		cluster = cluster.Without(name)
	}
	state.Observed.MemberRemoved(m.Node())
	return "", nil
}

// toRemove returns the members to remove before the Machine is deleted, or what must happen first. The member of a Machine with
// a Node is one of them even if it is not listed: the list may lag behind, and removing a member that does not exist is
// harmless.
func (s State) toRemove(cluster quorum.Cluster, m *snapshot.Machine) (names []string, why string) {
	if cluster.Members == nil {
		return nil, noResponse
	}
	if node := m.Node(); node != "" {
		names = []string{node}
	} else {
		// The machine may have joined etcd although it has no Node yet, and it may never get one.
		names = s.candidates(cluster, m)
		if len(names) > 0 && s.WithoutNode(m) {
			return nil, cluster.MayAbandon(names)
		}
	}
	rest := cluster
	for _, name := range names {
		if why := s.mayRemoveMember(rest, m, name); why != "" {
			return nil, why
		}
		rest = rest.Without(name)
	}
	return names, ""
}

// mayRemoveMember returns what must happen before this member of the Machine can be removed. It is empty if the member can be
// removed.
func (s State) mayRemoveMember(cluster quorum.Cluster, m *snapshot.Machine, name string) string {
	if !slices.Contains(cluster.Members, name) {
		if len(cluster.HealthyWithout(name)) == 0 {
			return "another healthy etcd member"
		}
		return ""
	}
	if why := cluster.MayRemove(name); why != "" {
		return why
	}
	if s.successor(cluster, m) == "" {
		return NoSuccessor
	}
	return ""
}

// removeMember removes this member of the Machine, after moving the leadership to another one. A member without a name has not
// started yet.
func (s State) removeMember(ctx context.Context, cluster quorum.Cluster, m *snapshot.Machine, name string) error {
	if name == "" {
		if err := s.Workload.RemoveUnstartedEtcdMembers(ctx, cluster.Healthy); err != nil {
			return fmt.Errorf("removing etcd members that have not started: %w", err)
		}
		return nil
	}
	if successor := s.successor(cluster, m); cluster.Leader == name && successor != "" {
		if err := s.Workload.MoveEtcdLeadership(ctx, name, successor); err != nil {
			return fmt.Errorf("moving the etcd leadership from %s to %s: %w", name, successor, err)
		}
	}
	if err := s.Workload.RemoveEtcdMember(ctx, name, cluster.HealthyWithout(name)); err != nil {
		return fmt.Errorf("removing etcd member %s: %w", name, err)
	}
	return nil
}
