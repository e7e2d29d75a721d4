package etcd

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"github.com/blang/semver/v4"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database"
)

const (
	// snapshotMethod is the full gRPC method of snapshots.
	snapshotMethod = "/etcdserverpb.Maintenance/Snapshot"
	// chunk is how much of a snapshot a message has, in bytes, as in etcd.
	chunk = 32 << 10
	// maxDatabases is how many databases exist in this process at the same time. Other clients wait.
	maxDatabases = 4
	// snapshotTimeout is how long a client may take to read a snapshot, which is a file on our disk until then.
	snapshotTimeout = 10 * time.Minute
)

// Estimates of the size of a database, in bytes: its buckets, and what an object needs in addition to its encoding.
const (
	emptyDatabase  = 5 << 12
	databaseObject = 256
)

// databaseSize estimates the size of the database of a number of objects with these bytes. Pages are not full.
func databaseSize(objects, bytes int) int64 {
	return emptyDatabase + int64(bytes+objects*databaseObject)*10/9
}

// storageVersion returns the version of the storage of an etcd.
func storageVersion(v semver.Version) string { return fmt.Sprintf("%d.%d.0", v.Major, v.Minor) }

// versioned reports whether an etcd notes the version of its storage.
func versioned(v semver.Version) bool { return v.GE(semver.Version{Major: 3, Minor: 6}) }

// reserve waits until another database can exist. The caller calls free.
func (s *maintenanceServer) reserve(ctx context.Context) (free func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// membership returns what the database of a member has besides keys.
func (c Cluster) membership(g *cloud.Group, m Member, index uint64) database.Membership {
	running := versionOf(g, m.Machine)
	stored := database.Membership{Term: c.Term, Index: index, Version: storageVersion(running), Versioned: versioned(running)}
	for _, one := range c.list() {
		stored.Members = append(stored.Members, database.Member{
			ID: one.ID, Name: one.Name, PeerURLs: one.PeerURLs, ClientURLs: one.ClientURLs,
		})
	}
	return stored
}

// Snapshot streams the database of the responding member, and its SHA-256. It needs no quorum.
func (s *maintenanceServer) Snapshot(_ *etcdserverpb.SnapshotRequest, stream etcdserverpb.Maintenance_SnapshotServer) error {
	free, err := s.reserve(stream.Context())
	if err != nil {
		return err
	}
	defer free()
	c, m, err := self(stream.Context())
	if err != nil {
		return err
	}
	g := stream.Context().Value(targetKey{}).(target).group
	versions := g.Versions()
	stored := c.membership(g, m, versions.Revision)
	f, err := database.Write(versions, stored)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	defer f.Close() //nolint:errcheck // It was only read.
	version := ""
	if stored.Versioned {
		version = stored.Version
	}
	return send(f, version, g.Faults().Snapshot, stream.Send)
}

// send sends a database in chunks, and its SHA-256, with a fault.
func send(f *database.File, version, fault string, to func(*etcdserverpb.SnapshotResponse) error) error {
	sum, from, end := sha256.New(), f.Reader(), f.Size
	if fault == faults.SnapshotInterrupted {
		end = f.Size / 2
	}
	for sent := int64(0); sent < end; {
		// gRPC may still need the previous buffer.
		buffer := make([]byte, min(chunk, end-sent))
		if _, err := io.ReadFull(from, buffer); err != nil {
			return status.Error(codes.Internal, fmt.Sprintf("read the database: %v", err))
		}
		sent += int64(len(buffer))
		_, _ = sum.Write(buffer) // never fails
		message := &etcdserverpb.SnapshotResponse{RemainingBytes: uint64(f.Size - sent), Blob: buffer, Version: version}
		if err := to(message); err != nil {
			return err
		}
	}
	if end < f.Size {
		return status.Error(codes.Unavailable, faults.ErrInjected.Error())
	}
	digest := sum.Sum(nil)
	if fault == faults.SnapshotCorrupt {
		digest[0] ^= 1
	}
	return to(&etcdserverpb.SnapshotResponse{Blob: digest, Version: version})
}

// Hash returns the hash of the database of the responding member.
func (s *maintenanceServer) Hash(ctx context.Context, _ *etcdserverpb.HashRequest) (*etcdserverpb.HashResponse, error) {
	free, err := s.reserve(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	g := ctx.Value(targetKey{}).(target).group
	versions := g.Versions()
	hash, err := database.Hash(versions, c.membership(g, m, versions.Revision))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &etcdserverpb.HashResponse{Header: c.headerAt(m, versions.Revision), Hash: hash}, nil
}

// HashKV returns the hash of all keys at a revision, which is the same on all members.
func (*maintenanceServer) HashKV(ctx context.Context, r *etcdserverpb.HashKVRequest) (*etcdserverpb.HashKVResponse, error) {
	c, m, err := self(ctx)
	if err != nil {
		return nil, err
	}
	versions := ctx.Value(targetKey{}).(target).group.Versions()
	at := versions.Revision
	switch {
	case r.Revision <= 0:
	case uint64(r.Revision) < versions.Compacted:
		return nil, rpctypes.ErrGRPCCompacted
	case uint64(r.Revision) > versions.Revision:
		return nil, rpctypes.ErrGRPCFutureRev
	default:
		at = uint64(r.Revision)
	}
	hash, err := database.HashKV(versions, at)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &etcdserverpb.HashKVResponse{
		Header: c.headerAt(m, versions.Revision), Hash: hash,
		CompactRevision: signed(versions.Compacted), HashRevision: signed(at),
	}, nil
}
