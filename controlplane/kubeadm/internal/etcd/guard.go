package etcd

import (
	"context"
	"fmt"
	"net"
)

// gRPC connects on goroutines of its own, where a panic would end the process for all clusters. What runs there is
// ours, or works on what a workload cluster sends: it fails that one connection instead.

// dial connects to the member on a Node.
func (c *Cluster) dial(ctx context.Context, node string) (conn net.Conn, err error) {
	defer recovered("connecting", &err)
	return c.options.Dial(ctx, node)
}

// recovered, deferred, makes a panic an error.
func recovered(doing string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s panicked: %v", doing, r)
	}
}
