package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/cluster-api/provider/step"
)

// noSuccessor is what leaveEtcd waits for when nobody could lead.
const noSuccessor = "a healthy etcd member that can lead"

// leaveEtcd takes the Machine's member out of etcd, unless that could cost the quorum: then it says why not. Members
// are asked here and now, whatever was seen before. If the Machine has no Node, its member is found by elimination, which
// takes one live list: a member of a Machine that the cache does not show yet would be taken for this one's.
func (c *Controller) leaveEtcd(ctx context.Context, s *scope, m *machine) (why string, err error) {
	cluster := etcdOf(s.workload.Etcd(ctx, s.askable(s.observed)))
	names, why := s.membersOf(cluster, m)
	if why != "" {
		return why, nil
	}
	if m.node() == "" {
		if stale, err := c.confirmMachines(ctx, s); stale != "" || err != nil {
			return "", cmp.Or(err, step.Stale("the cache does not show %s yet", stale))
		}
	}
	for _, name := range names {
		if err := c.leave(ctx, s, cluster, m, name); err != nil {
			return "", err
		}
		cluster = cluster.without(name)
	}
	return "", nil
}

// mayLeave says why the Machine's member could not leave etcd now; empty when it could. Members are asked here and now.
func (c *Controller) mayLeave(ctx context.Context, s *scope, m *machine) string {
	_, why := s.membersOf(etcdOf(s.workload.Etcd(ctx, s.askable(s.observed))), m)
	return why
}

// membersOf are the members that have to leave etcd before the Machine goes, or why they must not. The member of a
// Machine with a Node is among them even if those that answer do not know it: one that lags behind may not know it yet,
// and to ask a quorum to remove a member that is gone does no harm.
func (s *scope) membersOf(cluster etcdCluster, m *machine) (names []string, why string) {
	if cluster.members == nil {
		return nil, "an etcd member that answers"
	}
	if node := m.node(); node != "" {
		names = []string{node}
	} else {
		// A machine can have joined etcd although nobody has found its Node, and may never find it.
		names = s.strangers(cluster, m)
		if len(names) > 0 && s.nodeless(m) {
			return nil, cluster.mayForget(names)
		}
	}
	rest := cluster
	for _, name := range names {
		if why := s.mayGo(rest, m, name); why != "" {
			return nil, why
		}
		rest = rest.without(name)
	}
	return names, ""
}

// mayGo says why the member of this name, which is the Machine's, must not leave now. Empty: it may.
func (s *scope) mayGo(cluster etcdCluster, m *machine, name string) string {
	if !slices.Contains(cluster.members, name) {
		if len(cluster.others(name)) == 0 {
			return "another healthy etcd member"
		}
		return ""
	}
	if why := cluster.mayLose(name); why != "" {
		return why
	}
	if s.successor(cluster, m) == "" {
		return noSuccessor
	}
	return ""
}

// leave takes the member of this name, which is the Machine's, out of etcd. Without a name it is one that has not
// started yet.
func (c *Controller) leave(ctx context.Context, s *scope, cluster etcdCluster, m *machine, name string) error {
	if name == "" {
		if err := s.workload.RemoveUnstartedEtcdMembers(ctx, cluster.healthy); err != nil {
			return fmt.Errorf("removing etcd members that have not started: %w", err)
		}
		return nil
	}
	if successor := s.successor(cluster, m); cluster.leader == name && successor != "" {
		if err := s.workload.MoveEtcdLeadership(ctx, name, successor); err != nil {
			return fmt.Errorf("moving etcd's leadership from %s to %s: %w", name, successor, err)
		}
	}
	if err := s.workload.RemoveEtcdMember(ctx, name, cluster.others(name)); err != nil {
		return fmt.Errorf("removing etcd member %s: %w", name, err)
	}
	return nil
}

// successor is the Node of the newest other Machine whose etcd member is well: one that stays, or else one that is being
// deleted and does not go before its own member has left.
func (s *scope) successor(cluster etcdCluster, leaving *machine) string {
	fallback := ""
	for _, m := range slices.Backward(s.machines) {
		if m == leaving || !slices.Contains(cluster.healthy, m.node()) {
			continue
		}
		if !m.deleting() {
			return m.node()
		}
		if fallback == "" && hooked(m.Machine) {
			fallback = m.node()
		}
	}
	return fallback
}

// strangers are the members that may be those of a Machine without Node: no other Machine has them, and neither has a
// Node that is known to be on another machine.
func (s *scope) strangers(cluster etcdCluster, of *machine) []string {
	var names []string
	for _, name := range cluster.members {
		if name != "" && slices.ContainsFunc(s.machines, func(m *machine) bool { return m.node() == name }) {
			continue
		}
		if node := s.observed.Nodes[name]; node != nil && node.Spec.ProviderID != "" &&
			(of.Spec.ProviderID == nil || *of.Spec.ProviderID != node.Spec.ProviderID) {
			continue
		}
		names = append(names, name)
	}
	return slices.Compact(names)
}

// nodeless: there are Machines besides m that have no Node.
func (s *scope) nodeless(m *machine) bool {
	return slices.ContainsFunc(s.machines, func(other *machine) bool { return other != m && other.node() == "" })
}

// etcdCluster is what the members that answer agree on.
type etcdCluster struct {
	// members are the names of all members, sorted; nil when nobody answers.
	members []string
	// healthy are the members that answer and have no alarm.
	healthy []string
	leader  string
}

func etcdOf(asked []EtcdMember) etcdCluster {
	var c etcdCluster
	for _, member := range asked {
		if member.Err != nil {
			continue
		}
		// A member that lags behind knows others than those that lead; the longest list is the careful one.
		if len(member.Members) > len(c.members) {
			c.members = member.Members
		}
		if len(member.Alarms) == 0 {
			c.healthy = append(c.healthy, member.Node)
		}
		if member.Leader {
			c.leader = member.Node
		}
	}
	return c
}

// others are the healthy members without this one.
func (c etcdCluster) others(name string) []string {
	return slices.DeleteFunc(slices.Clone(c.healthy), func(n string) bool { return n == name })
}

// without is the cluster once the member has left.
func (c etcdCluster) without(name string) etcdCluster {
	c.members = slices.DeleteFunc(slices.Clone(c.members), func(n string) bool { return n == name })
	c.healthy = c.others(name)
	return c
}

// mayLose says why a member must not be removed: those that remain must have a quorum without it. Empty: it may go.
func (c etcdCluster) mayLose(name string) string {
	remaining := len(c.members) - 1
	if remaining < 1 {
		return "another etcd member: the last one cannot be removed"
	}
	quorum := remaining/2 + 1
	if healthy := len(c.others(name)); healthy < quorum {
		return fmt.Sprintf("%d healthy etcd members besides %s, there are %d", quorum, name, healthy)
	}
	return ""
}

// mayForget says why a machine that one of these members may be on must not go while nobody knows which: the others
// must have a quorum whether the member is removed or not. Empty: it may go, and what it leaves behind is pruned later.
func (c etcdCluster) mayForget(names []string) string {
	healthy := slices.DeleteFunc(slices.Clone(c.healthy), func(n string) bool { return slices.Contains(names, n) })
	if quorum := len(c.members)/2 + 1; len(healthy) < quorum {
		return fmt.Sprintf("%d healthy etcd members besides [%s], there are %d: Machines without Node may be those members", quorum, strings.Join(names, " "), len(healthy))
	}
	return ""
}
