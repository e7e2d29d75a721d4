package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// noSuccessor is what leaveEtcd waits for when nobody could lead.
const noSuccessor = "a healthy etcd member that can lead"

// leaveEtcd takes the Machine's member out of etcd, unless that could cost the quorum: then it says why not. Members
// are asked here and now, whatever was seen before.
func (c *Controller) leaveEtcd(ctx context.Context, s *scope, m *machine) (why string, err error) {
	cluster := etcdOf(s.workload.Etcd(ctx, s.askable(s.observed)))
	if cluster.members == nil {
		return "an etcd member that answers", nil
	}
	if node := m.node(); node != "" {
		return c.leave(ctx, s, cluster, m, node)
	}
	// A machine can have joined etcd although nobody has found its Node, and may never find it.
	names := s.strangers(cluster, m)
	if len(names) > 0 && s.nodeless(m) {
		return cluster.mayForget(names), nil
	}
	for _, name := range names {
		if why, err := c.leave(ctx, s, cluster, m, name); why != "" || err != nil {
			return why, err
		}
		cluster = cluster.without(name)
	}
	return "", nil
}

// leave takes the member of this name, which is the Machine's, out of etcd. Without a name it is one that has not
// started yet.
func (c *Controller) leave(ctx context.Context, s *scope, cluster etcdCluster, m *machine, name string) (why string, err error) {
	if !slices.Contains(cluster.members, name) {
		return "", nil
	}
	if why := cluster.mayLose(name); why != "" {
		return why, nil
	}
	successor := s.successor(cluster, m)
	if successor == "" {
		return noSuccessor, nil
	}
	if name == "" {
		if err := s.workload.RemoveUnstartedEtcdMembers(ctx, cluster.healthy); err != nil {
			return "", fmt.Errorf("removing etcd members that have not started: %w", err)
		}
		return "", nil
	}
	if cluster.leader == name {
		if err := s.workload.MoveEtcdLeadership(ctx, name, successor); err != nil {
			return "", fmt.Errorf("moving etcd's leadership from %s to %s: %w", name, successor, err)
		}
	}
	if err := s.workload.RemoveEtcdMember(ctx, name, cluster.others(name)); err != nil {
		return "", fmt.Errorf("removing etcd member %s: %w", name, err)
	}
	return "", nil
}

// successor is the Node of the newest other Machine whose etcd member is well.
func (s *scope) successor(cluster etcdCluster, leaving *machine) string {
	for _, m := range slices.Backward(s.machines) {
		if m != leaving && !m.deleting() && slices.Contains(cluster.healthy, m.node()) {
			return m.node()
		}
	}
	return ""
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
