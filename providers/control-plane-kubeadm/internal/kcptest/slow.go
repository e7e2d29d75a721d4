package kcptest

import (
	"context"
	"slices"
	"sync"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
)

// Unresponsive is a workload cluster with a connection that does not respond before the context ends.
type Unresponsive struct {
	*Workload
	// OnlyMembers are the Nodes whose etcd members do not respond. Nil: nothing responds.
	OnlyMembers []string
	// Queried are the Nodes whose etcd members were queried.
	Queried []string

	mu sync.Mutex
}

// Etcd implements connection.Workload.
func (u *Unresponsive) Etcd(ctx context.Context, nodes []string) []quorum.Member {
	u.mu.Lock()
	u.Queried = append(u.Queried, nodes...)
	u.mu.Unlock()
	responses := u.Workload.Etcd(ctx, nodes)
	for i := range responses {
		if u.OnlyMembers == nil || slices.Contains(u.OnlyMembers, responses[i].Node) {
			<-ctx.Done()
			responses[i] = quorum.Member{Node: responses[i].Node, Err: ctx.Err()}
		}
	}
	return responses
}

// KubeadmConfigExists implements connection.Workload.
func (u *Unresponsive) KubeadmConfigExists(ctx context.Context) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// RemoveEtcdMember implements connection.Workload.
func (u *Unresponsive) RemoveEtcdMember(ctx context.Context, _ string, _ []string) error {
	<-ctx.Done()
	return ctx.Err()
}

// Maintain implements connection.Workload.
func (u *Unresponsive) Maintain(ctx context.Context, _ *controlplanev1.KubeadmControlPlane) error {
	<-ctx.Done()
	return ctx.Err()
}

// Slow is a workload cluster with a slow etcd, for tests with virtual time.
type Slow struct {
	*Workload
	// Delay is the duration of each call to etcd. Removing a member takes three.
	Delay time.Duration
	// Lagging is a Node whose member knows only a and b.
	Lagging string
}

// Etcd implements connection.Workload.
func (s Slow) Etcd(_ context.Context, nodes []string) []quorum.Member {
	time.Sleep(s.Delay)
	responses := s.Workload.Etcd(context.Background(), nodes)
	for i := range responses {
		if responses[i].Node == s.Lagging {
			responses[i].Members = []string{"a", "b"}
		}
	}
	return responses
}

// RemoveEtcdMember implements connection.Workload.
func (s Slow) RemoveEtcdMember(ctx context.Context, name string, via []string) error {
	for range 3 {
		select {
		case <-time.After(s.Delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Workload.RemoveEtcdMember(ctx, name, via)
}
