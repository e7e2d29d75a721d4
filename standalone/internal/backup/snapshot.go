package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// snapshot streams a snapshot of etcd: the database, and its SHA-256, which etcd computes while it sends. Read fails if the database does
// not have that hash.
type snapshot struct {
	stream  pb.Maintenance_SnapshotClient
	size    int64 // of the database and its hash
	left    int64 // not received yet
	pending []byte
	hash    hash.Hash
	sum     []byte
}

// openSnapshot begins a snapshot of the present state.
func openSnapshot(ctx context.Context, etcd *clientv3.Client) (*snapshot, error) {
	stream, err := pb.NewMaintenanceClient(etcd.ActiveConnection()).Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		return nil, fmt.Errorf("read a snapshot of etcd: %w", err)
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, fmt.Errorf("read a snapshot of etcd: %w", err)
	}
	size := int64(first.RemainingBytes) + int64(len(first.Blob)) + sha256.Size
	s := newSnapshot(stream, size)
	return s, s.receive(first.Blob)
}

func newSnapshot(stream pb.Maintenance_SnapshotClient, size int64) *snapshot {
	return &snapshot{stream: stream, size: size, left: size, hash: sha256.New()}
}

// receive takes the next part.
func (s *snapshot) receive(part []byte) error {
	if int64(len(part)) > s.left {
		return errors.New("read a snapshot of etcd: it has more bytes than it should have")
	}
	database := min(int64(len(part)), max(0, s.left-sha256.Size))
	s.hash.Write(part[:database])
	s.sum = append(s.sum, part[database:]...)
	s.left -= int64(len(part))
	if s.left == 0 && !bytes.Equal(s.sum, s.hash.Sum(nil)) {
		return errors.New("read a snapshot of etcd: its hash does not match: etcd's data, or the disk, may be damaged")
	}
	s.pending = part
	return nil
}

// Read implements io.Reader.
func (s *snapshot) Read(p []byte) (int, error) {
	for len(s.pending) == 0 {
		if s.left == 0 {
			return 0, io.EOF
		}
		next, err := s.stream.Recv()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, fmt.Errorf("read a snapshot of etcd: %w", err)
		}
		if err := s.receive(next.Blob); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	return n, nil
}
