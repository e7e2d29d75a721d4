package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"sigs.k8s.io/cluster-api/backup/etcdsnapshot"
)

// revisionBump is added to the revision of a restored snapshot. Clients have seen revisions after the snapshot: in their caches, an object
// must not get an older one, or the same one with other content. It is what etcd's documentation recommends, more than the writes of weeks.
const revisionBump = 1_000_000_000

// DialStorage connects to the etcd of a running control plane by its unix socket.
func DialStorage(socket string) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + socket}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", socket, err)
	}
	return client, nil
}

// Storage is the etcd of a data directory that no API server uses.
type Storage struct {
	*clientv3.Client
	etcd *etcdServer
}

// OpenStorage starts etcd on the data in dir, without an API server, and serves it on the socket. Log receives its log.
func OpenStorage(ctx context.Context, dir, socket string, log io.Writer) (*Storage, error) {
	etcd, err := startEtcd(ctx, dir, socket, false, log, log)
	if err != nil {
		return nil, err
	}
	client, err := DialStorage(socket)
	if err != nil {
		etcd.Close()
		return nil, err
	}
	return &Storage{Client: client, etcd: etcd}, nil
}

// Close stops etcd when everything is on disk.
func (s *Storage) Close() error {
	err := s.Client.Close()
	s.etcd.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// RestoreStorage writes the data of a snapshot of etcd to dir, which must not exist, after it has checked the snapshot. Its revision is
// raised, and all earlier ones are compacted, so that clients list again instead of going back in time.
func RestoreStorage(ctx context.Context, file, dir string) error {
	err := etcdsnapshot.Restore(ctx, file, dir, etcdsnapshot.Options{
		Name: embed.NewConfig().Name, PeerURL: nowhere()[0].String(), BumpRevision: revisionBump, MarkCompacted: true,
	})
	if err != nil {
		return fmt.Errorf("restore etcd's data: %w", err)
	}
	return nil
}
