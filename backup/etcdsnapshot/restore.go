package etcdsnapshot

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
)

// Options say how to restore a snapshot.
type Options struct {
	// Name and PeerURL are those of the only member of the new cluster.
	Name, PeerURL string
	// BumpRevision raises the newest revision, so that it is higher than any that a client has seen before the restore: caches of controllers
	// would otherwise take old objects for new. MarkCompacted marks the older revisions as compacted, so that watches of them end. One needs
	// the other.
	BumpRevision  uint64
	MarkCompacted bool
}

// maxBump is the largest BumpRevision, so that revisions stay far from the largest number.
const maxBump = 1 << 60

// token is the name of new clusters, as etcd's default. What separates a cluster from its past are its new member IDs.
const token = "etcd-cluster"

// Restore creates the data directory of a new etcd with one member and the keys of a snapshot. The directory must not exist or be empty. It
// needs as much space as the snapshot. If there is an error, nothing of it is left. When ctx ends, it returns after the present step.
func Restore(ctx context.Context, snapshotPath, dataDir string, options Options) error {
	if (options.BumpRevision > 0) != options.MarkCompacted || options.BumpRevision > maxBump {
		return fmt.Errorf("a revision can be raised by up to %d, together with marking older ones as compacted", uint64(maxBump))
	}
	if options.Name == "" || options.PeerURL == "" {
		return errors.New("the name and the peer URL of the member must be set")
	}
	entries, err := os.ReadDir(dataDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading data directory %s: %w", dataDir, err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("data directory %s is not empty", dataDir)
	}
	// etcd opens the path itself; what counts is that its content has been checked.
	file, _, err := openChecked(ctx, snapshotPath)
	if err != nil {
		return err
	}
	defer closing(file)
	return restore(ctx, snapshotPath, dataDir, options)
}

// restore restores a snapshot that has been checked.
func restore(ctx context.Context, snapshotPath, dataDir string, options Options) error {
	existed := exists(dataDir)
	failure := newFailure()
	err := failure.run(func() error {
		return snapshot.NewV3(failure.logger()).Restore(snapshot.RestoreConfig{
			SnapshotPath: snapshotPath, OutputDataDir: dataDir,
			Name: options.Name, PeerURLs: []string{options.PeerURL},
			InitialCluster: options.Name + "=" + options.PeerURL, InitialClusterToken: token,
			RevisionBump: options.BumpRevision, MarkCompacted: options.MarkCompacted,
		})
	})
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("restoring the snapshot into %s: %w", dataDir, err)
	if err := errors.Join(err, os.RemoveAll(dataDir)); !existed {
		return err
	}
	return errors.Join(err, os.Mkdir(dataDir, 0o700))
}
