package etcd

import (
	"context"
	"net"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// gRPC connects on its own goroutines, where a panic would end the process. Code there works on data from workload clusters, so
// a panic becomes an error of the connection.

// dial connects to the member on a Node.
func (c *Cluster) dial(ctx context.Context, node string) (conn net.Conn, err error) {
	defer failsafe.Recover("connecting to an etcd member", &err)
	return c.options.Dial(ctx, node)
}
