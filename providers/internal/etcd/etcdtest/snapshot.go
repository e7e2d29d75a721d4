package etcdtest

import (
	"crypto/sha256"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// chunk is the size of the chunks of a snapshot in bytes.
const chunk = 32 << 10

// Database is what members send as their snapshot.
type Database struct {
	// Content is followed by its checksum.
	Content []byte
	// BreakAfter is the number of chunks after which the stream breaks. Zero: it does not.
	BreakAfter int
	// Stalled is closed by a member that has sent one chunk, and then nothing more. Nil: members do not stall.
	Stalled chan struct{}
}

// Keep sets what members send as their snapshot.
func (e *Etcd) Keep(d Database) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.database = d
}

// Snapshot implements etcdserverpb.MaintenanceServer.
func (m *member) Snapshot(_ *etcdserverpb.SnapshotRequest, to etcdserverpb.Maintenance_SnapshotServer) error {
	m.etcd.mu.Lock()
	d := m.etcd.database
	err := m.ready(false)
	m.etcd.mu.Unlock()
	if err != nil {
		return err
	}
	rest := d.Content
	for sent := 1; len(rest) > 0; sent++ {
		n := min(chunk, len(rest))
		if err := to.Send(&etcdserverpb.SnapshotResponse{Blob: rest[:n], RemainingBytes: uint64(len(rest) - n)}); err != nil {
			return err
		}
		rest = rest[n:]
		if d.Stalled != nil {
			close(d.Stalled)
			<-to.Context().Done()
			return to.Context().Err()
		}
		if sent == d.BreakAfter {
			return status.Error(codes.Unavailable, "broken")
		}
	}
	sum := sha256.Sum256(d.Content)
	return to.Send(&etcdserverpb.SnapshotResponse{Blob: sum[:]})
}
