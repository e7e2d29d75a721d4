package etcd

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// firstTerm is the raft term of a new cluster.
const firstTerm = 2

// stateKey is where a group stores the state of its etcd. The API server does not serve this resource.
func stateKey() store.Key {
	return store.Key{Resource: store.Resource{Group: "simulated.cloud", Resource: "etcds"}, Name: "etcd"}
}

// state is the stored state: the etcd clusters of a workload cluster, in the order of their creation. There is only more
// than one after a split brain.
type state struct {
	Clusters []clusterState `json:"clusters"`
}

type clusterState struct {
	ID      uint64        `json:"id,string"`
	Term    uint64        `json:"term"`
	Leader  uint64        `json:"leader,string"`
	Members []memberState `json:"members"`
	// Removed are removed members whose machines still have their data.
	Removed []memberState `json:"removed,omitempty"`
}

type memberState struct {
	ID      uint64    `json:"id,string"`
	Name    string    `json:"name"`
	Machine types.UID `json:"machine"`
	// PeerURLs are those of a restored or updated member. Others have that of their machine.
	PeerURLs []string `json:"peerURLs,omitempty"`
}

// peerURL returns the peer URL of etcd on a machine.
func peerURL(machine string) string { return "https://" + machine + ":2380" }

func (m memberState) peerURLs() []string {
	if len(m.PeerURLs) > 0 {
		return m.PeerURLs
	}
	return []string{peerURL(m.Name)}
}

func (m memberState) runsOn(machine Machine) bool {
	return m.Name == machine.Name && m.Machine == machine.UID
}

func (m memberState) alive(g *cloud.Group) bool { return g.Alive(m.Name, m.Machine) }

func (c *clusterState) alive(g *cloud.Group) int {
	n := 0
	for _, m := range c.Members {
		if m.alive(g) {
			n++
		}
	}
	return n
}

func (c *clusterState) hasQuorum(g *cloud.Group) bool { return 2*c.alive(g) > len(c.Members) }

// reachable reports whether a new member can reach one: the peer URL of a restored member may be a placeholder.
func (c *clusterState) reachable(g *cloud.Group) bool {
	return slices.ContainsFunc(c.Members, func(m memberState) bool { return m.alive(g) && slices.Contains(m.peerURLs(), peerURL(m.Name)) })
}

// gone reports whether the machines of all members are gone, and their disks with them.
func (c *clusterState) gone(g *cloud.Group) bool {
	return !slices.ContainsFunc(slices.Concat(c.Members, c.Removed), func(m memberState) bool { return g.HasMachine(m.Name, m.Machine) })
}

func (c *clusterState) index(id uint64) int {
	return slices.IndexFunc(c.Members, func(m memberState) bool { return m.ID == id })
}

// leaderless reports whether the cluster has to, and can, elect a leader.
func (c *clusterState) leaderless(g *cloud.Group) bool {
	i := c.index(c.Leader)
	return (i < 0 || !c.Members[i].alive(g)) && c.hasQuorum(g)
}

// elect makes the living member with the lowest ID the leader of a new term, if there is a quorum but no leader.
func (c *clusterState) elect(g *cloud.Group) {
	if !c.leaderless(g) {
		return
	}
	c.Leader = 0
	for _, m := range c.Members {
		if m.alive(g) && (c.Leader == 0 || m.ID < c.Leader) {
			c.Leader = m.ID
		}
	}
	c.Term++
}

// find returns the cluster of which a machine is or was a member, nil if there is none.
func (s *state) find(m Machine) (c *clusterState, member memberState, removed bool) {
	for i := range s.Clusters {
		c := &s.Clusters[i]
		for _, one := range c.Members {
			if one.runsOn(m) {
				return c, one, false
			}
		}
		for _, one := range c.Removed {
			if one.runsOn(m) {
				return c, one, true
			}
		}
	}
	return nil, memberState{}, false
}

// load reads the state, which is empty before the first member.
func load(g *cloud.Group) (*state, error) {
	o, err := g.Get(stateKey())
	if apierrors.IsNotFound(err) {
		return &state{}, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(o)
}

func decode(o *store.Object) (*state, error) {
	var kept struct {
		Spec state `json:"spec"`
	}
	if err := o.Into(&kept); err != nil {
		return nil, fmt.Errorf("read the state of etcd: %w", err)
	}
	return &kept.Spec, nil
}

func encode(s *state) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "simulated.cloud/v1", "kind": "Etcd",
		"metadata": map[string]any{"name": stateKey().Name}, "spec": s,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the state of etcd: %w", err)
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(text)
}

// update changes the state atomically. change is called again on a conflict; its error aborts the update.
func update(g *cloud.Group, change func(*state) error) error {
	for {
		_, err := g.Update(stateKey(), store.WriteOptions{}, func(current *store.Object) (*unstructured.Unstructured, error) {
			s, err := decode(current)
			if err != nil {
				return nil, err
			}
			if err := change(s); err != nil {
				return nil, err
			}
			return encode(s)
		})
		if !apierrors.IsNotFound(err) {
			return err
		}
		s := &state{}
		if err := change(s); err != nil {
			return err
		}
		u, err := encode(s)
		if err != nil {
			return err
		}
		if _, err := g.Create(stateKey().Resource, u, store.WriteOptions{}); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

// id derives an ID, which is never 0.
func id(seed ...string) uint64 {
	hash := fnv.New64a()
	for _, part := range seed {
		_, _ = hash.Write([]byte(part)) // never fails
		_, _ = hash.Write([]byte{0})
	}
	return max(hash.Sum64(), 1)
}
