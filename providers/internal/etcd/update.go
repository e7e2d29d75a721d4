package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// SetPeerURLs changes the addresses at which other members reach the member with this ID, through the member on a Node.
func (c *Cluster) SetPeerURLs(ctx context.Context, node string, id uint64, urls ...string) error {
	return c.change(ctx, node, "changing the peer URLs through", func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := etcdserverpb.NewClusterClient(conn).MemberUpdate(ctx, &etcdserverpb.MemberUpdateRequest{ID: id, PeerURLs: urls})
		return err
	})
}
