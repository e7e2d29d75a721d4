package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// Etcd implements connection.Workload. It queries all members concurrently, and closes the connections to other members.
func (c *Cluster) Etcd(ctx context.Context, nodes []string) []quorum.Member {
	c.etcd.Keep(nodes)
	views := c.views(ctx, nodes)
	responses := make([]quorum.Member, 0, len(nodes))
	for i, node := range nodes {
		if views[i].err != nil {
			responses = append(responses, quorum.Member{Node: node, Err: views[i].err})
			continue
		}
		responses = append(responses, memberOf(node, views[i].View))
	}
	return responses
}

func memberOf(node string, v etcd.View) quorum.Member {
	a := quorum.Member{Node: node, ClusterID: v.ClusterID, Leader: v.LeaderID == v.ID, Version: v.Version, Alarms: v.Alarms}
	for _, m := range v.Members {
		a.Members = append(a.Members, m.Name)
		if m.ID == v.ID {
			a.Name = m.Name
		}
	}
	slices.Sort(a.Members)
	return a
}

type viewed struct {
	etcd.View
	err error
}

// views queries the members on the Nodes concurrently.
func (c *Cluster) views(ctx context.Context, nodes []string) []viewed {
	all := make([]viewed, len(nodes))
	var queries sync.WaitGroup
	for i, node := range nodes {
		queries.Go(func() {
			defer failsafe.Recover("querying an etcd member", &all[i].err)
			all[i].View, all[i].err = c.etcd.View(ctx, node)
		})
	}
	queries.Wait()
	return all
}

// MoveEtcdLeadership implements connection.Workload. The member on Node to reports the leader, so that the member on Node from,
// which may be broken, is called only if it is the leader.
func (c *Cluster) MoveEtcdLeadership(ctx context.Context, from, to string) error {
	v, err := c.etcd.View(ctx, to)
	if err != nil {
		return err
	}
	leader, _ := etcd.ByID(v.Members, v.LeaderID)
	if leader.Name != from {
		return nil
	}
	return c.etcd.MoveLeader(ctx, from, v.ID)
}

// RemoveEtcdMember implements connection.Workload. It reads the list of members from a quorum, queries them again, and returns
// an error if the healthy ones among the others would have no quorum.
func (c *Cluster) RemoveEtcdMember(ctx context.Context, name string, via []string) error {
	if name == "" {
		return errors.New("the name of the etcd member is required")
	}
	by, members, err := c.members(ctx, via)
	if err != nil {
		return err
	}
	leaving, found := etcd.ByName(members, name)
	if !found {
		return nil
	}
	return c.removeMember(ctx, by, leaving, members, via)
}

// RemoveUnstartedEtcdMembers implements connection.Workload, with the same checks.
func (c *Cluster) RemoveUnstartedEtcdMembers(ctx context.Context, via []string) error {
	by, members, err := c.members(ctx, via)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Name != "" {
			continue
		}
		if err := c.removeMember(ctx, by, m, members, via); err != nil {
			return err
		}
		members = slices.DeleteFunc(slices.Clone(members), func(left etcd.Member) bool { return left.ID == m.ID })
	}
	return nil
}

func (c *Cluster) removeMember(ctx context.Context, by string, leaving etcd.Member, members []etcd.Member, via []string) error {
	if err := c.mayRemove(ctx, leaving, members, via); err != nil {
		return err
	}
	return c.etcd.RemoveMember(ctx, by, leaving.ID)
}

// listed is the response of one member to a linearizable request for the list of members.
type listed struct {
	node    string
	members []etcd.Member
	err     error
}

// members returns the list of members that a quorum agrees on, from the first member that responds, and the Node of that
// member. All are queried concurrently, so that unresponsive ones cause no delay.
func (c *Cluster) members(ctx context.Context, via []string) (string, []etcd.Member, error) {
	if len(via) == 0 {
		return "", nil, errors.New("there is no healthy etcd member")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	responses := make(chan listed, len(via))
	for _, node := range via {
		go func() { responses <- c.list(ctx, node) }()
	}
	var errs []error
	for range via {
		response := <-responses
		if response.err == nil {
			return response.node, response.members, nil
		}
		errs = append(errs, response.err)
	}
	return "", nil, errors.Join(errs...)
}

func (c *Cluster) list(ctx context.Context, node string) (l listed) {
	l.node = node
	defer failsafe.Recover("listing the etcd members", &l.err)
	l.members, l.err = c.etcd.Members(ctx, node)
	return l
}

// mayRemove returns an error if a member must not be removed. Learners do not count for the quorum, so they can always be
// removed.
func (c *Cluster) mayRemove(ctx context.Context, leaving etcd.Member, members []etcd.Member, via []string) error {
	if leaving.IsLearner {
		return nil
	}
	voters := map[uint64]bool{}
	for _, m := range members {
		if !m.IsLearner && m.ID != leaving.ID {
			voters[m.ID] = true
		}
	}
	quorum := len(voters)/2 + 1
	healthy := 0
	for _, v := range c.views(ctx, via) {
		if v.err == nil && voters[v.ID] {
			delete(voters, v.ID) // It counts once, even if several Nodes lead to it.
			healthy++
		}
	}
	if healthy < quorum {
		return fmt.Errorf("cannot remove etcd member %s: %d of the others must be healthy (found %d)",
			cmp.Or(leaving.Name, "without a name"), quorum, healthy)
	}
	return nil
}
