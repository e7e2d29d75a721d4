package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Annotations of an etcd Pod, which show the state of its member.
const (
	// ClusterIDAnnotation is the ID of the etcd cluster, decimal.
	ClusterIDAnnotation = annotationPrefix + "cluster-id"
	// MemberIDAnnotation is the ID of the member, decimal.
	MemberIDAnnotation = annotationPrefix + "member-id"
	// LeaderFromAnnotation is when the member last became leader on request (RFC 3339), or created the cluster.
	LeaderFromAnnotation = annotationPrefix + "leader-from"
	// MemberRemovedAnnotation is on the Pod of a member that was removed from the cluster.
	MemberRemovedAnnotation = annotationPrefix + "member-removed"

	annotationPrefix = "etcd.inmemory.infrastructure.cluster.x-k8s.io/"
	podPrefix        = "etcd-"
)

// Reasons why a machine cannot join.
var (
	// ErrNoCluster: no etcd cluster exists.
	ErrNoCluster = errors.New("no etcd cluster exists to join")
	// ErrNoQuorum: the quorum is lost, so members cannot be added.
	ErrNoQuorum = errors.New("etcdserver: request timed out")
	// ErrPeerURLExists: a stale member has the peer URL of the machine, which derives from its name.
	ErrPeerURLExists = errors.New("etcdserver: Peer URLs already exists")
	// ErrNoPeer: no living member has a peer URL that reaches it. After a restore, it has to be updated first.
	ErrNoPeer = errors.New("cannot fetch cluster info from peer urls: could not retrieve cluster information from the given URLs")
)

// Machine is the machine of a member, identified by its UID.
type Machine struct {
	// Name is the name of the machine, its Node and its member.
	Name string
	// UID identifies the machine, and the data on its disk.
	UID types.UID
}

// Member is a member of a workload cluster's etcd.
type Member struct {
	// ID identifies the member.
	ID uint64
	// Machine is where it runs or ran: without MemberRemove, a member remains after its machine is deleted.
	Machine Machine
	// PeerURLs are where other members reach it, according to the cluster.
	PeerURLs []string
	// Alive is whether it responds.
	Alive bool
}

// Cluster is a snapshot of an etcd cluster.
type Cluster struct {
	// ID identifies the cluster.
	ID uint64
	// Members are the members, sorted by ID.
	Members []Member
	// Leader is the ID of the leader, 0 without quorum.
	Leader uint64
	// Term is the raft term, which grows with every change of the leader.
	Term uint64
}

// Found starts etcd on a machine as the first member and leader of a new cluster, like kubeadm init. A machine that is or
// was a member has data and continues with it.
func Found(g *cloud.Group, m Machine) error {
	return start(g, m, func(s *state) (*clusterState, error) { return s.found(g, m), nil })
}

// Join starts etcd on a machine as another member, like kubeadm join. The cluster must have a quorum. A machine that is
// or was a member has data and continues with it.
func Join(g *cloud.Group, m Machine) error {
	return start(g, m, func(s *state) (*clusterState, error) {
		if len(s.Clusters) == 0 {
			return nil, ErrNoCluster
		}
		for i := range s.Clusters {
			if c := &s.Clusters[i]; c.hasQuorum(g) {
				if !c.reachable(g) {
					return nil, ErrNoPeer
				}
				return c, nil
			}
		}
		return nil, ErrNoQuorum
	})
}

// Restore restores the membership of a machine after a restart of this process. It does not need a quorum.
func Restore(g *cloud.Group, m Machine) error {
	return start(g, m, func(s *state) (*clusterState, error) {
		if len(s.Clusters) == 0 {
			return s.found(g, m), nil
		}
		return &s.Clusters[0], nil
	})
}

// found creates another cluster. The first one of a group has a stable ID.
func (s *state) found(g *cloud.Group, m Machine) *clusterState {
	seed := []string{string(g.UID()), g.Key().String()}
	if len(s.Clusters) > 0 {
		seed = append(seed, string(m.UID))
	}
	s.Clusters = append(s.Clusters, clusterState{ID: id(seed...), Term: firstTerm})
	return &s.Clusters[len(s.Clusters)-1]
}

func start(g *cloud.Group, m Machine, into func(*state) (*clusterState, error)) error {
	err := update(g, func(s *state) error {
		if known, _, _ := s.find(m); known != nil {
			return nil
		}
		c, err := into(s)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(c.Members, func(other memberState) bool { return slices.Contains(other.peerURLs(), peerURL(m.Name)) }) {
			return ErrPeerURLExists
		}
		member := memberState{ID: id(string(g.UID()), string(m.UID), m.Name), Name: m.Name, Machine: m.UID}
		c.Members = append(c.Members, member)
		if len(c.Members) == 1 {
			c.Leader = member.ID
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("start etcd on %s: %w", m.Name, err)
	}
	return nil
}

// Forget drops removed members of a machine whose disk is gone. Current members are kept.
func Forget(g *cloud.Group, m Machine) error {
	s, err := load(g)
	if err != nil {
		return err
	}
	if _, _, removed := s.find(m); !removed {
		return nil
	}
	return update(g, func(s *state) error {
		for i := range s.Clusters {
			s.Clusters[i].Removed = slices.DeleteFunc(s.Clusters[i].Removed, func(one memberState) bool { return one.runsOn(m) })
		}
		return nil
	})
}

// Clusters returns the etcd clusters of a workload cluster, in the order of their creation: normally one, none before the
// first, several after a split brain.
func Clusters(g *cloud.Group) ([]Cluster, error) {
	s, err := elected(g)
	if err != nil {
		return nil, err
	}
	all := make([]Cluster, 0, len(s.Clusters))
	for i := range s.Clusters {
		all = append(all, s.Clusters[i].toCluster(g))
	}
	return all, nil
}

// elected reads the state after pending elections.
func elected(g *cloud.Group) (*state, error) {
	s, err := load(g)
	if err != nil || !slices.ContainsFunc(s.Clusters, func(c clusterState) bool { return c.leaderless(g) }) {
		return s, err
	}
	err = update(g, func(s *state) error {
		for i := range s.Clusters {
			s.Clusters[i].elect(g)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("elect a leader: %w", err)
	}
	return load(g)
}

func (c *clusterState) toCluster(g *cloud.Group) Cluster {
	result := Cluster{ID: c.ID, Term: c.Term}
	for _, m := range c.Members {
		result.Members = append(result.Members, Member{
			ID: m.ID, Machine: Machine{Name: m.Name, UID: m.Machine}, PeerURLs: m.peerURLs(), Alive: m.alive(g),
		})
	}
	slices.SortFunc(result.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	if result.HasQuorum() {
		result.Leader = c.Leader
	}
	return result
}

// Serves reports whether etcd of a workload cluster serves reads and writes, or has not been created yet.
func Serves(g *cloud.Group) (bool, error) {
	s, err := load(g)
	if err != nil {
		return false, err
	}
	return len(s.Clusters) == 0 || slices.ContainsFunc(s.Clusters, func(c clusterState) bool { return c.hasQuorum(g) }), nil
}

// HasQuorum reports whether more than half of the members respond.
func (c Cluster) HasQuorum() bool { return 2*c.alive() > len(c.Members) }

func (c Cluster) alive() int {
	n := 0
	for _, m := range c.Members {
		if m.Alive {
			n++
		}
	}
	return n
}

func (c Cluster) byID(id uint64) (Member, bool) {
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return c.Members[i], true
}

// without returns the cluster without a member.
func (c Cluster) without(id uint64) Cluster {
	c.Members = slices.DeleteFunc(slices.Clone(c.Members), func(m Member) bool { return m.ID == id })
	return c
}

// Remove removes a member from its cluster. Callers check that this is safe.
func Remove(g *cloud.Group, cluster, member uint64) error {
	err := change(g, cluster, func(c *clusterState) {
		i := c.index(member)
		if i < 0 {
			return
		}
		gone := c.Members[i]
		c.Members = slices.Delete(c.Members, i, i+1)
		if g.HasMachine(gone.Name, gone.Machine) {
			c.Removed = append(c.Removed, gone)
		}
		c.elect(g)
	})
	if err != nil {
		return fmt.Errorf("remove a member: %w", err)
	}
	return nil
}

// setPeerURLs changes where other members reach a member.
func setPeerURLs(g *cloud.Group, cluster, member uint64, urls []string) error {
	err := change(g, cluster, func(c *clusterState) {
		if i := c.index(member); i >= 0 {
			c.Members[i].PeerURLs = urls
		}
	})
	if err != nil {
		return fmt.Errorf("change peer URLs: %w", err)
	}
	return nil
}

// lead makes a member the leader of a new term.
func lead(g *cloud.Group, cluster, member uint64) error {
	err := change(g, cluster, func(c *clusterState) {
		c.Leader = member
		c.Term++
	})
	if err != nil {
		return fmt.Errorf("change the leader: %w", err)
	}
	return nil
}

func change(g *cloud.Group, cluster uint64, how func(*clusterState)) error {
	return update(g, func(s *state) error {
		for i := range s.Clusters {
			if s.Clusters[i].ID == cluster {
				how(&s.Clusters[i])
			}
		}
		return nil
	})
}

// Annotations returns the annotations of the etcd Pod of a machine.
func Annotations(g *cloud.Group, m Machine) (map[string]string, error) {
	s, err := load(g)
	if err != nil {
		return nil, err
	}
	c, member, removed := s.find(m)
	if c == nil {
		return nil, nil
	}
	all := map[string]string{
		ClusterIDAnnotation: strconv.FormatUint(c.ID, 10),
		MemberIDAnnotation:  strconv.FormatUint(member.ID, 10),
	}
	if removed {
		all[MemberRemovedAnnotation] = ""
	}
	if c.Leader == member.ID && c.Term == firstTerm {
		all[LeaderFromAnnotation] = g.Now().UTC().Format(time.RFC3339)
	}
	return all, nil
}

// annotate updates the annotations of a member's Pod, if there is one.
func annotate(g *cloud.Group, m Machine, key, value string) error {
	err := store.Modify(g, metav1.NamespaceSystem, podPrefix+m.Name, func(pod *corev1.Pod) error {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
