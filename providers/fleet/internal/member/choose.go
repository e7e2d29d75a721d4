package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// lag is by how many entries of the log a follower may be behind, so that a snapshot of it is as good as one of the leader.
const lag = 1000

// Member is an etcd member on a Node.
type Member struct {
	Node string
	etcd.View
}

// leads reports whether the member is the leader.
func (m Member) leads() bool { return m.ID == m.LeaderID }

// learns reports whether the member does not vote yet: it may have an incomplete database.
func (m Member) learns() bool {
	own, found := etcd.ByID(m.Members, m.ID)
	return !found || own.IsLearner
}

// Choose returns the member to read a snapshot from: a follower whose log is as long as that of the others, so that the leader has no
// additional load; the leader if there is none. All members are queried concurrently. An error has what each of them responded.
func (e *Etcd) Choose(ctx context.Context) (Member, error) {
	views, errs := make([]Member, len(e.nodes)), make([]error, len(e.nodes))
	var queries sync.WaitGroup
	for i, node := range e.nodes {
		queries.Go(func() {
			defer failsafe.Recover("querying an etcd member", &errs[i])
			views[i].Node = node
			views[i].View, errs[i] = e.members.View(ctx, node)
		})
	}
	queries.Wait()
	return choose(views, errs)
}

// choose decides, given what members responded, in the order of their Nodes.
func choose(views []Member, errs []error) (Member, error) {
	var able []Member
	var refused []error
	for i, m := range views {
		switch {
		case errs[i] != nil:
			refused = append(refused, errs[i])
		case slices.Contains(m.Alarms, "CORRUPT"):
			refused = append(refused, fmt.Errorf("the etcd member on Node %s has the alarm CORRUPT", m.Node))
		case m.learns():
			refused = append(refused, fmt.Errorf("the etcd member on Node %s does not vote yet", m.Node))
		default:
			able = append(able, m)
		}
	}
	if len(able) == 0 {
		return Member{}, fmt.Errorf("no etcd member can be backed up: %w", errors.Join(refused...))
	}
	longest := slices.MaxFunc(able, func(a, b Member) int { return cmp.Compare(a.RaftIndex, b.RaftIndex) }).RaftIndex
	for _, m := range able {
		if !m.leads() && m.RaftIndex+lag >= longest {
			return m, nil
		}
	}
	return slices.MaxFunc(able, func(a, b Member) int { return cmp.Compare(a.RaftIndex, b.RaftIndex) }), nil
}

// Snapshot reads the database of a member. Close it after use.
func (e *Etcd) Snapshot(ctx context.Context, of Member) (*etcd.Snapshot, error) {
	return e.members.Snapshot(ctx, of.Node)
}
