package etcdsnapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// etcd is a real etcd of one member, and a client.
type etcd struct {
	*clientv3.Client
	server *embed.Etcd
	stop   func()
}

// startEtcd starts etcd on a unix socket, with a data directory that may have been restored.
func startEtcd(t testing.TB, dataDir, name string) *etcd {
	t.Helper()
	folder, err := os.MkdirTemp("", "etcd") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "socket")
	config := embed.NewConfig()
	config.Dir, config.Name = dataDir, name
	config.ListenPeerUrls = nil
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	nowhere := []url.URL{{Scheme: "http", Host: "localhost:0"}}
	config.AdvertisePeerUrls, config.AdvertiseClientUrls = nowhere, nowhere
	config.InitialCluster = config.InitialClusterFromName(name)
	config.UnsafeNoFsync = true
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	<-server.Server.ReadyNotify()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + socket}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		client.Close()
		server.Close()
	})
	t.Cleanup(stop)
	return &etcd{client, server, stop}
}

func (e *etcd) put(t testing.TB, key string, value []byte) int64 {
	t.Helper()
	response, err := e.Put(t.Context(), key, string(value))
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// messages returns the messages of a snapshot as etcd sends them.
func (e *etcd) messages(t testing.TB) []*etcdserverpb.SnapshotResponse {
	t.Helper()
	stream, err := etcdserverpb.NewMaintenanceClient(e.ActiveConnection()).Snapshot(t.Context(), &etcdserverpb.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*etcdserverpb.SnapshotResponse
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, message)
	}
}

// stream returns messages one after the other, and then an error.
func stream(messages []*etcdserverpb.SnapshotResponse, end error) Next {
	return func() ([]byte, uint64, error) {
		if len(messages) == 0 {
			return nil, 0, end
		}
		next := messages[0]
		messages = messages[1:]
		return next.Blob, next.RemainingBytes, nil
	}
}

// snapshotOf receives a snapshot into a file.
func (e *etcd) snapshot(t testing.TB) (path string, summary Summary) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "snapshot.db")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	summary, err = Receive(file, stream(e.messages(t), io.EOF))
	if err != nil {
		t.Fatal(err)
	}
	return path, summary
}

// object returns a ConfigMap as API servers store it.
func object(t testing.TB, name string, size int) []byte {
	t.Helper()
	raw, err := (&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, BinaryData: map[string][]byte{"a": make([]byte, size)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), unknown...)
}

func jsonObject(t testing.TB, name string) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"apiVersion": "a.example.com/v1", "kind": "A", "metadata": map[string]any{"name": name}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// filled returns a snapshot of an etcd with objects, changes, deletions and a compaction.
func filled(t testing.TB) (path string, summary Summary) {
	t.Helper()
	e := startEtcd(t, filepath.Join(t.TempDir(), "data"), "m1")
	defer e.stop()
	for i := range 200 {
		e.put(t, fmt.Sprintf("/registry/configmaps/default/c%03d", i), object(t, fmt.Sprint(i), 1000))
	}
	compacted := e.put(t, "/registry/a.example.com/a/x", jsonObject(t, "x"))
	if _, err := e.Compact(t.Context(), compacted, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	e.put(t, "/registry/configmaps/default/c000", object(t, "again", 10))
	if _, err := e.Delete(t.Context(), "/registry/configmaps/default/c1", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	e.put(t, "/registry/secrets/default/s", []byte("k8s:enc:aescbc:v1:key1:0123456789"))
	e.put(t, "compact_rev_key", []byte("3"))
	e.storageVersion(t)
	return e.snapshot(t)
}

// storageVersion waits until etcd has recorded the version of its storage, which it does in the background.
func (e *etcd) storageVersion(t testing.TB) {
	t.Helper()
	testenv.Eventually(t, "etcd records the version of its storage", func() error {
		if e.server.Server.StorageVersion() == nil {
			return errors.New("it has none")
		}
		return nil
	})
}

// rehashed writes a database with a matching hash.
func rehashed(t testing.TB, database []byte) string {
	t.Helper()
	sum := sha256.Sum256(database)
	path := filepath.Join(t.TempDir(), "snapshot.db")
	if err := os.WriteFile(path, append(bytes.Clone(database), sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// databaseOf returns the database of a snapshot.
func databaseOf(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content[:len(content)-hashSize]
}

// changed returns a snapshot whose database was changed with bbolt.
func changed(t testing.TB, path string, change func(tx *bbolt.Tx) error) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(copied, databaseOf(t, path), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(copied, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(change); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	database, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	return rehashed(t, database)
}
