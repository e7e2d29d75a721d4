package etcd

import (
	"context"
	"net"

	"sigs.k8s.io/cluster-api/provider/crash"
)

// gRPC connects on goroutines of its own, where a panic would end the process for all clusters. What runs there is
// ours, or works on what a workload cluster sends: it fails that one connection instead.

// dial connects to the member on a Node.
func (c *Cluster) dial(ctx context.Context, node string) (conn net.Conn, err error) {
	defer crash.Recover("connecting to an etcd member", &err)
	return c.options.Dial(ctx, node)
}
