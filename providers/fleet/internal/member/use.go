package member

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/internal/etcd"
)

// View returns the state of etcd according to the member on a Node.
func (e *Etcd) View(ctx context.Context, node string) (etcd.View, error) {
	return e.members.View(ctx, node)
}

// SetPeerURL changes the address at which other members reach a member, through the member on a Node.
func (e *Etcd) SetPeerURL(ctx context.Context, node string, id uint64, url string) error {
	return e.members.SetPeerURLs(ctx, node, id, url)
}

// Workload returns a client of the workload cluster, without a cache.
func (e *Etcd) Workload() client.Client { return e.cluster.Client }
