package membership

import (
	"context"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Workload queries and changes the etcd cluster of a workload cluster.
type Workload interface {
	// Etcd queries the etcd members on these Nodes.
	Etcd(ctx context.Context, nodes []string) []quorum.Member
	// MoveEtcdLeadership makes the member on Node to the leader if the member on Node from is.
	MoveEtcdLeadership(ctx context.Context, from, to string) error
	// RemoveEtcdMember removes the member with this name through the members on the Nodes via.
	RemoveEtcdMember(ctx context.Context, name string, via []string) error
	// RemoveUnstartedEtcdMembers removes members that have not started, through the members on the Nodes via.
	RemoveUnstartedEtcdMembers(ctx context.Context, via []string) error
	// RevokeToken deletes the bootstrap token with this ID, unless it is a user's, and reports whether it existed.
	RevokeToken(ctx context.Context, id string) (existed bool, err error)
}

// Remover removes etcd members.
type Remover struct {
	step.Clients
	// JoinTimeout is how long kubeadm takes at most, after it has read the configuration of the cluster, until it adds its member to etcd.
	JoinTimeout time.Duration

	joins joins
	// checked has the UIDs of control planes that were not held by an operation when this process removed their first member.
	checked sync.Map
}

// confirm returns the reader that checks snapshots against the API server.
func (r *Remover) confirm() snapshot.LiveReader { return snapshot.LiveReader{Reader: r.Live} }

// State is what decisions about members are based on: the Machines, and the observed workload cluster.
type State struct {
	*snapshot.ControlPlane
	// Workload is nil while there is no connection.
	Workload Workload
	// Observed is nil if the workload cluster was not observed. It is updated after removals.
	Observed *health.Observation
	// Lost is true if the connection has been missing for so long that conditions report it.
	Lost bool
}

// query queries the members again, regardless of what was observed before.
func (s State) query(ctx context.Context) quorum.Cluster {
	return quorum.Of(s.Workload.Etcd(ctx, s.Observed.MembersToQuery(s.ControlPlane)))
}

// successor returns the Node of the newest other Machine with a healthy etcd member: one that is not being deleted, or else one
// that is held by our hook until its own member has been removed.
func (s State) successor(cluster quorum.Cluster, leaving *snapshot.Machine) string {
	fallback := ""
	for _, m := range slices.Backward(s.Machines) {
		if m == leaving || !slices.Contains(cluster.Healthy, m.Node()) {
			continue
		}
		if !m.Deleting() {
			return m.Node()
		}
		if fallback == "" && HasHook(m.Machine) {
			fallback = m.Node()
		}
	}
	return fallback
}

// candidates returns the members that may belong to a Machine without a Node: those that belong to no other Machine, and to no
// Node with another provider ID.
func (s State) candidates(cluster quorum.Cluster, of *snapshot.Machine) []string {
	var names []string
	for _, name := range cluster.Members {
		if name != "" && slices.ContainsFunc(s.Machines, func(m *snapshot.Machine) bool { return m.Node() == name }) {
			continue
		}
		if node := s.Observed.Nodes[name]; node != nil && node.Spec.ProviderID != "" &&
			(of.Spec.ProviderID == "" || of.Spec.ProviderID != node.Spec.ProviderID) {
			continue
		}
		names = append(names, name)
	}
	return slices.Compact(names)
}

// OrphanedMembers returns the etcd members that have neither a Machine nor a Node. While a Machine has no Node, its member
// cannot be distinguished from these, so there are none. A member without a name has not started yet: it may belong to any
// Machine without a member.
func (s State) OrphanedMembers() []string {
	if s.Observed == nil || !s.StackedEtcd() || s.WithoutNode() {
		return nil
	}
	members := s.Observed.EtcdCluster().Members
	known := map[string]bool{}
	for _, m := range s.Machines {
		known[m.Node()] = true
		known[""] = known[""] || !slices.Contains(members, m.Node())
	}
	for name := range s.Observed.Nodes {
		known[name] = true
	}
	orphaned := slices.DeleteFunc(slices.Clone(members), func(name string) bool { return known[name] })
	return slices.Compact(orphaned)
}
