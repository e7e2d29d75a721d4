package etcdsnapshot

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	// registry is the prefix of the keys of API servers, by their default.
	registry = "/registry/"
	// drillName and drillPeer are the name and the address of the member of a drill, where nothing listens.
	drillName, drillPeer = "drill", "http://localhost:0"
	// pageBytes is about how many bytes of values are read at once. minPage and maxPage limit the number of keys: a value has at most a few
	// megabytes, and etcd counts the rest of the keys for each page.
	pageBytes        = 8 << 20
	minPage, maxPage = 8, 10000
	// quota is the size from which etcd would reject writes, in bytes. A drill writes next to nothing, but a database may be larger than
	// the default.
	quota = 64 << 30
	// stopTimeout is how long etcd may take to stop.
	stopTimeout = 30 * time.Second
)

// Drilled is what a drill has found. Keys is the sum of the others.
type Drilled struct {
	// Keys is the number of keys of the API server. Decoded values are complete objects; Encrypted ones cannot be decoded without the key of
	// the API server; Undecodable ones are neither.
	Keys, Decoded, Encrypted, Undecodable int
	// Revision is the newest revision after the restore.
	Revision int64
}

// Drill restores a snapshot into a folder that it creates in workDir, starts etcd there, reads all keys below /registry/, stops it, and
// deletes the folder. Nothing listens, so no client can read the data. progress, unless it is nil, is called after each page.
//
// It needs as much space as the snapshot, and memory for etcd's index and for pages of about 8 MiB: 64 MiB for 10,000 objects of 10 KiB.
// The database itself is mapped. When ctx ends, it stops. Errors are ErrTruncated, ErrDamaged, those of ctx, or why etcd cannot serve the
// data.
func Drill(ctx context.Context, snapshotPath, workDir string, progress func(Drilled)) (Drilled, error) {
	folder, err := os.MkdirTemp(workDir, "drill-")
	if err != nil {
		return Drilled{}, fmt.Errorf("creating a folder for the drill: %w", err)
	}
	result, err := drill(ctx, snapshotPath, filepath.Join(folder, "data"), progress)
	return result, errors.Join(err, os.RemoveAll(folder))
}

func drill(ctx context.Context, snapshotPath, dataDir string, progress func(Drilled)) (Drilled, error) {
	if _, err := Inspect(ctx, snapshotPath); err != nil {
		return Drilled{}, err
	}
	if err := restore(ctx, snapshotPath, dataDir, Options{Name: drillName, PeerURL: drillPeer}); err != nil {
		return Drilled{}, err
	}
	server, err := start(ctx, dataDir)
	if err != nil {
		return Drilled{}, fmt.Errorf("starting etcd with the snapshot: %w", err)
	}
	reader := &reader{server: server, progress: progress}
	err = reader.run(ctx)
	if stopErr := server.stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return Drilled{}, fmt.Errorf("reading the restored snapshot: %w", err)
	}
	return reader.result, nil
}

// member is a running etcd.
type member struct {
	*embed.Etcd
	failure *failure
}

// start starts etcd on a data directory, and returns when it has a leader. No address is opened: requests are calls.
func start(ctx context.Context, dataDir string) (*member, error) {
	failure := newFailure()
	config := embed.NewConfig()
	config.Dir, config.Name = dataDir, drillName
	config.ListenPeerUrls, config.ListenClientUrls = nil, nil
	nowhere := []url.URL{{Scheme: "http", Host: "localhost:0"}}
	config.AdvertisePeerUrls, config.AdvertiseClientUrls = nowhere, nowhere
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.InitialClusterToken = token
	config.QuotaBackendBytes = quota
	config.UnsafeNoFsync = true // The data is deleted in any case.
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(failure.logger())
	m := &member{failure: failure}
	if err := failure.run(func() (err error) {
		m.Etcd, err = embed.StartEtcd(config)
		return err
	}); err != nil {
		return nil, err
	}
	select {
	case <-m.Server.ReadyNotify():
		return m, nil
	case err := <-m.Err():
		return nil, errors.Join(err, m.stop())
	case <-failure.failed:
		return nil, errors.Join(failure.err(), m.stop())
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), m.stop())
	}
}

// stop stops etcd. If a goroutine of etcd has ended early, what it held may keep the others from ending: they are left to the end of the
// process.
func (m *member) stop() error {
	stopped := make(chan error, 1)
	go func() { stopped <- m.failure.run(func() error { m.Close(); return nil }) }()
	select {
	case err := <-stopped:
		return err
	case <-time.After(stopTimeout):
		return fmt.Errorf("etcd does not stop within %s", stopTimeout)
	}
}

// reader reads the keys of an API server page by page.
type reader struct {
	server   *member
	progress func(Drilled)
	result   Drilled
}

func (r *reader) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.server.failure.failed:
			cancel(r.server.failure.err())
		case <-ctx.Done():
		}
	}()
	key, end, limit := []byte(registry), []byte(clientv3.GetPrefixRangeEnd(registry)), int64(minPage)
	for {
		// The first request asks the leader; the others are of its revision.
		page, err := r.server.Server.Range(ctx, &etcdserverpb.RangeRequest{
			Key: key, RangeEnd: end, Limit: limit, Revision: r.result.Revision, Serializable: r.result.Revision > 0,
		})
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if r.result.Revision == 0 {
			r.result.Revision = page.Header.Revision
		}
		size := 0
		for _, kv := range page.Kvs {
			r.count(kv.Value)
			size += len(kv.Value)
		}
		if r.progress != nil {
			r.progress(r.result)
		}
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
		key = append(page.Kvs[len(page.Kvs)-1].Key, 0)
		limit = nextLimit(limit, size)
	}
}

// nextLimit returns the number of keys of the next page, from that and the size of the last one.
func nextLimit(limit int64, size int) int64 {
	switch {
	case size > pageBytes:
		return max(limit/2, minPage)
	case size < pageBytes/4:
		return min(limit*2, maxPage)
	default:
		return limit
	}
}

func (r *reader) count(value []byte) {
	r.result.Keys++
	switch sortOf(value) {
	case decoded:
		r.result.Decoded++
	case encrypted:
		r.result.Encrypted++
	default:
		r.result.Undecodable++
	}
}
