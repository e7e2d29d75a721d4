package etcd

import (
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database"
)

// ErrNoSelf is the error for a data directory whose member is not in its database.
var ErrNoSelf = errors.New("the member of the log in member/wal is not in the database")

// Lost reports whether etcd was created, and no cluster has a quorum.
func Lost(g *cloud.Group) (bool, error) {
	serves, err := Serves(g)
	return !serves, err
}

// Runs reports whether a machine is or was a member, so that it has data.
func Runs(g *cloud.Group, m Machine) (bool, error) {
	s, err := load(g)
	if err != nil {
		return false, err
	}
	c, _, _ := s.find(m)
	return c != nil, nil
}

// Refound starts etcd on a machine as a member of a new cluster, like kubeadm init on a machine with a data directory; nil for one without.
// If no other etcd cluster has a quorum, the objects of the workload cluster become those of the data directory: none without one.
// Otherwise it is a split brain, and the objects remain, because there is only one set of them. A machine that is or was a member has data
// and continues with it. Clusters without machines are forgotten.
func Refound(g *cloud.Group, m Machine, d *database.Directory) error {
	if runs, err := Runs(g, m); runs || err != nil {
		return err
	}
	members := []memberState{{ID: id(string(g.UID()), string(m.UID), m.Name), Name: m.Name, Machine: m.UID}}
	self, cluster := members[0].ID, id(string(g.UID()), g.Key().String(), string(m.UID))
	var content *cloud.Content
	if d != nil {
		if !slices.ContainsFunc(d.Members, func(one database.Member) bool { return one.ID == d.Self }) {
			return ErrNoSelf
		}
		self, cluster, content = d.Self, d.Cluster, d.Content
		members = membersOf(d, m)
	}
	s, err := load(g)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(s.Clusters, func(c clusterState) bool { return c.hasQuorum(g) }) {
		if err := g.Replace(content, string(m.UID)); err != nil {
			return fmt.Errorf("start etcd on %s: %w", m.Name, err)
		}
	}
	err = update(g, func(s *state) error {
		s.Clusters = slices.DeleteFunc(s.Clusters, func(c clusterState) bool { return c.gone(g) })
		s.Clusters = append(s.Clusters, clusterState{ID: cluster, Term: firstTerm, Leader: self, Members: members})
		return nil
	})
	if err != nil {
		return fmt.Errorf("start etcd on %s: %w", m.Name, err)
	}
	return nil
}

// membersOf returns the members of a data directory, of which one starts on a machine, and publishes its name.
func membersOf(d *database.Directory, m Machine) []memberState {
	var all []memberState
	for _, one := range d.Members {
		member := memberState{ID: one.ID, Name: one.Name, PeerURLs: one.PeerURLs}
		if one.ID == d.Self {
			member.Name, member.Machine = m.Name, m.UID
		}
		all = append(all, member)
	}
	return all
}
