package controlplane

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"
)

const (
	// etcdQuota is the maximum size of the database, in bytes. etcd rejects writes beyond it.
	etcdQuota = 8 << 30
	// snapshotEvery and keepForFollowers bound the log entries that etcd keeps in memory. It has no followers here.
	snapshotEvery    = 2000
	keepForFollowers = 100
	// defragmentAbove is how many megabytes must be reclaimable for etcd to defragment at startup.
	defragmentAbove = 100
	// slow is the duration above which etcd logs a request.
	slow = 500 * time.Millisecond
)

// etcdServer is a running etcd with one member.
type etcdServer struct {
	*embed.Etcd
	connections chan *grpc.Server // receives the server of the client socket
	level       zap.AtomicLevel   // of the log
}

// Close closes client connections, then etcd, and returns when everything is on disk. Remaining connections are only
// watches: etcd's own Close would wait seven seconds for them.
func (e *etcdServer) Close() {
	e.level.SetLevel(zapcore.DPanicLevel) // etcd logs closed sockets as errors; failures to save data are panics
	select {
	case server := <-e.connections:
		server.Stop()
	default: // It never started to serve.
	}
	e.Etcd.Close()
}

// startEtcd serves one member on a unix socket. No TCP port is opened: dir and socket are protected by the file system,
// so no other user of the machine can read the cluster's Secrets. It returns when etcd accepts writes.
func startEtcd(ctx context.Context, dir, socket string, unsafeNoFsync bool, log, fatal io.Writer) (*etcdServer, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ListenPeerUrls = nil
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	cfg.AdvertisePeerUrls, cfg.AdvertiseClientUrls = nowhere(), nowhere()
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = unsafeNoFsync
	cfg.QuotaBackendBytes = etcdQuota
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = snapshotEvery, keepForFollowers
	cfg.BootstrapDefragThresholdMegabytes = defragmentAbove
	cfg.BackendFreelistType = "map"
	cfg.WarningApplyDuration, cfg.WarningUnaryRequestDuration = slow, slow
	connections := make(chan *grpc.Server, 1)
	cfg.ServiceRegister = func(s *grpc.Server) { connections <- s }
	level := zap.NewAtomicLevelAt(zapcore.WarnLevel)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLogger(log, fatal, level))

	// gRPC warns about every connection that is aborted while connecting, which kube-apiserver does often.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, log))
	started, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", dir, err)
	}
	server := &etcdServer{Etcd: started, connections: connections, level: level}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", dir, err)
	case <-ctx.Done():
		server.Close()
		return nil, fmt.Errorf("start etcd in %s: %w", dir, ctx.Err())
	}
}

// nowhere is what etcd advertises to other members, because it requires addresses. There are none, and nothing listens there.
func nowhere() []url.URL { return []url.URL{{Scheme: "http", Host: "localhost:0"}} }

// etcdLogger logs to out. etcd ends the process when it cannot save data; the reason is also written to fatal, if it is not nil.
func etcdLogger(out, fatal io.Writer, level zapcore.LevelEnabler) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.AddSync(out), level)
	if fatal != nil {
		short := zap.NewProductionEncoderConfig()
		short.TimeKey, short.LevelKey, short.CallerKey, short.StacktraceKey = "", "", "", ""
		core = zapcore.NewTee(core, zapcore.NewCore(zapcore.NewConsoleEncoder(short), fatalWriter{fatal}, zapcore.DPanicLevel))
	}
	return zap.New(core)
}

// fatalWriter writes why etcd ends the process.
type fatalWriter struct{ io.Writer }

func (w fatalWriter) Write(message []byte) (int, error) {
	_, err := fmt.Fprintf(w.Writer, "Error: etcd cannot go on (is the disk full?): %s", message)
	return len(message), err
}

// Sync implements zapcore.WriteSyncer.
func (fatalWriter) Sync() error { return nil }
