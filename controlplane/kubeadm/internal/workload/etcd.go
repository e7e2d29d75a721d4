package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/etcd"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/quorum"
	"sigs.k8s.io/cluster-api/provider/crash"
)

// Etcd implements connection.Workload. All members are asked at the same time, so it takes as long as the slowest. It
// ends the connections to members that are not asked.
func (c *Cluster) Etcd(ctx context.Context, nodes []string) []quorum.Member {
	c.etcd.Keep(nodes)
	views := c.views(ctx, nodes)
	answers := make([]quorum.Member, 0, len(nodes))
	for i, node := range nodes {
		if views[i].err != nil {
			answers = append(answers, quorum.Member{Node: node, Err: views[i].err})
			continue
		}
		answers = append(answers, answer(node, views[i].View))
	}
	return answers
}

func answer(node string, v etcd.View) quorum.Member {
	a := quorum.Member{Node: node, ClusterID: v.ClusterID, Leader: v.LeaderID == v.ID, Alarms: v.Alarms}
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

// views asks the members on the Nodes for what each knows, all at the same time.
func (c *Cluster) views(ctx context.Context, nodes []string) []viewed {
	all := make([]viewed, len(nodes))
	var asked sync.WaitGroup
	for i, node := range nodes {
		asked.Go(func() {
			defer crash.Recover("asking an etcd member", &all[i].err)
			all[i].View, all[i].err = c.etcd.View(ctx, node)
		})
	}
	asked.Wait()
	return all
}

// MoveEtcdLeadership implements connection.Workload. The member that would lead is asked first, so that nothing is
// asked of one that may be broken unless it leads.
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

// RemoveEtcdMember implements connection.Workload. The list of members is read from a quorum of them, here and now,
// and so is which of them are well: it refuses to remove a member if the others that are would have no quorum.
func (c *Cluster) RemoveEtcdMember(ctx context.Context, name string, via []string) error {
	if name == "" {
		return errors.New("an etcd member without a name cannot be told from others")
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

// RemoveUnstartedEtcdMembers implements connection.Workload, with the same care.
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

// listed is what the member on a Node says that a quorum agrees on.
type listed struct {
	node    string
	members []etcd.Member
	err     error
}

// members is what the first member that answers says, and the Node it is on. All are asked at the same time, so that one
// that is silent holds up nothing.
func (c *Cluster) members(ctx context.Context, via []string) (string, []etcd.Member, error) {
	if len(via) == 0 {
		return "", nil, errors.New("there is no etcd member that could be asked")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan listed, len(via))
	for _, node := range via {
		go func() { answers <- c.list(ctx, node) }()
	}
	var errs []error
	for range via {
		answer := <-answers
		if answer.err == nil {
			return answer.node, answer.members, nil
		}
		errs = append(errs, answer.err)
	}
	return "", nil, errors.Join(errs...)
}

func (c *Cluster) list(ctx context.Context, node string) (l listed) {
	l.node = node
	defer crash.Recover("listing the etcd members", &l.err)
	l.members, l.err = c.etcd.Members(ctx, node)
	return l
}

// mayRemove says why a member must stay. A learner does not count for the quorum, so it may always go.
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
			delete(voters, v.ID) // However often it is asked, it counts once.
			healthy++
		}
	}
	if healthy < quorum {
		return fmt.Errorf("etcd member %s cannot be removed: of the others %d must be healthy, but only %d are",
			cmp.Or(leaving.Name, "without a name"), quorum, healthy)
	}
	return nil
}
