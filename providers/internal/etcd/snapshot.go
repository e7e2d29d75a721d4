package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// SnapshotStall is how long a member may send nothing before its snapshot fails.
const SnapshotStall = 30 * time.Second

var errStalled = fmt.Errorf("it sent nothing for %s", SnapshotStall)

// Snapshot is the database of a member, as a stream of chunks. The last 32 bytes are its SHA-256 checksum.
type Snapshot struct {
	node   string
	stream etcdserverpb.Maintenance_SnapshotClient
	cancel context.CancelCauseFunc
	ctx    context.Context //nolint:containedctx // The lifetime of the stream.
	stall  clock.Timer
}

// Snapshot begins to read the database of the member on a Node, over a connection of its own. It works without a quorum. Close it after
// use. The context bounds all of it.
func (c *Cluster) Snapshot(ctx context.Context, node string) (*Snapshot, error) {
	conn, err := c.connect(node)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Snapshot{node: node, cancel: cancel, ctx: ctx}
	s.stall = c.options.Clock.AfterFunc(SnapshotStall, func() { cancel(errStalled) })
	context.AfterFunc(ctx, func() {
		s.stall.Stop()
		_ = conn.Close() // Nothing is sent any more.
	})
	if s.stream, err = etcdserverpb.NewMaintenanceClient(conn).Snapshot(ctx, &etcdserverpb.SnapshotRequest{}); err != nil {
		err = s.failed(err)
		s.Close()
		return nil, err
	}
	return s, nil
}

// Next returns the next chunk, and how many bytes follow it. At the end, it returns io.EOF.
func (s *Snapshot) Next() (chunk []byte, remaining uint64, err error) {
	defer failsafe.Recover("reading a snapshot", &err)
	response, err := s.stream.Recv()
	switch {
	case errors.Is(err, io.EOF):
		return nil, 0, io.EOF
	case err != nil:
		return nil, 0, s.failed(err)
	}
	s.stall.Reset(SnapshotStall)
	return response.Blob, response.RemainingBytes, nil
}

// failed returns the error of a call, with what ended it.
func (s *Snapshot) failed(err error) error {
	if cause := context.Cause(s.ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("reading the snapshot of the etcd member on Node %s: %w", s.node, err)
}

// Close ends the stream and its connection.
func (s *Snapshot) Close() { s.cancel(context.Canceled) }
