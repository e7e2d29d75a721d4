package etcd

import (
	"errors"
	"fmt"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
)

// Reasons why a member cannot be inspected or forced.
var (
	// ErrNotRunning: no member runs on the machine.
	ErrNotRunning = errors.New("etcd does not run on it")
	// ErrRemoved: its member was removed from the cluster.
	ErrRemoved = errors.New("its etcd member was removed from the cluster")
	// ErrNoPower: the machine is off.
	ErrNoPower = errors.New("the machine does not run")
)

// Self returns the cluster of the member on a machine, as that member sees it, and the ID of the member. It does not need a quorum.
func Self(g *cloud.Group, m Machine) (Cluster, uint64, error) {
	s, err := elected(g)
	if err != nil {
		return Cluster{}, 0, err
	}
	c, member, removed := s.find(m)
	switch {
	case !g.Alive(m.Name, m.UID):
		return Cluster{}, 0, ErrNoPower
	case c == nil:
		return Cluster{}, 0, ErrNotRunning
	case removed:
		return Cluster{}, 0, ErrRemoved
	}
	return c.toCluster(g), member.ID, nil
}

// ForceNew starts etcd on a machine with --force-new-cluster: its member is the only one of its cluster, with the objects that are there.
// The others do not learn of that: if a majority of them gets power again, there are two clusters, a split brain. token identifies the
// call: it is carried out once, so that members that join later are kept.
func ForceNew(g *cloud.Group, m Machine, token string) error {
	if _, _, err := Self(g, m); err != nil {
		return err
	}
	forced := id(string(g.UID()), string(m.UID), token)
	err := update(g, func(s *state) error {
		c, member, removed := s.find(m)
		if c == nil || removed {
			return ErrNotRunning
		}
		if c.ID == forced {
			return nil
		}
		next := clusterState{ID: forced, Term: c.Term + 1, Leader: member.ID, Members: []memberState{member}}
		// To the others, it is a member that does not respond.
		c.Members[c.index(member.ID)].Machine = ""
		kept := make([]clusterState, 0, len(s.Clusters)+1)
		for i := range s.Clusters {
			if !s.Clusters[i].gone(g) {
				kept = append(kept, s.Clusters[i])
			}
		}
		s.Clusters = append(kept, next)
		return nil
	})
	if err != nil {
		return fmt.Errorf("start etcd on %s with --force-new-cluster: %w", m.Name, err)
	}
	return nil
}

// Revision returns the revision of the data of all members, which is also the index of their logs: they have the same objects.
func Revision(g *cloud.Group) int64 { return signed(g.Revision()) }
