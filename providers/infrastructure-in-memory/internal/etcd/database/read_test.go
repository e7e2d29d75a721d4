package database

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database/databasetest"
)

// archive returns a gzipped tar of files by name.
func archive(t testing.TB, files map[string]io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for name, from := range files {
		content, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// parts returns the database and the beginning of the log of a restored snapshot.
func parts(t testing.TB, s *store.Store, bump uint64) (db, log []byte) {
	t.Helper()
	directory := databasetest.Restore(t, written(t, s.Versions(), membership()), bump)
	db, err := os.ReadFile(filepath.Join(directory, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(directory, "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	file, err := os.Open(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if log, err = io.ReadAll(io.LimitReader(file, 8<<10)); err != nil {
		t.Fatal(err)
	}
	return db, log
}

// objectsOf returns the objects of a store, or of a read database, by key.
func objectsOf(t *testing.T, d *Directory) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, o := range d.Content.Objects {
		all[o.Key.String()] = fmt.Sprintf("%d %s", o.Revision, o.JSON)
	}
	return all
}

func currentOf(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, e := range entries(s.Versions()) {
		if e.object == nil {
			continue
		}
		if current, err := s.Get(e.object.Key); err != nil || current != e.object {
			continue
		}
		text, err := e.value()
		if err != nil {
			t.Fatal(err)
		}
		all[e.object.Key.String()] = fmt.Sprintf("%d %s", e.revision, text)
	}
	return all
}

func TestReadDirectory(t *testing.T) {
	for _, test := range []struct {
		reason string
		bump   uint64
		last   func(*store.Store)
	}{
		{"the revision of the snapshot", 0, func(*store.Store) {}},
		{"a bumped revision", 1000000, func(*store.Store) {}},
		{"the last change is a deletion", 0, func(s *store.Store) { remove(t, s, configMap("1")) }},
		{"the last change is an update", 7, func(s *store.Store) { label(t, s, configMap("1"), "x") }},
		{"all kinds of keys", 7, func(s *store.Store) {
			create(t, s, store.Nodes(), "v1", "Node", "", "node")
			create(t, s, store.Resource{Resource: "services"}, "v1", "Service", "n", "s")
			create(t, s, store.Resource{Group: "apps", Resource: "deployments"}, "apps/v1", "Deployment", "n", "d")
			create(t, s, store.Resource{Group: "networking.k8s.io", Resource: "ingresses"}, "networking.k8s.io/v1", "Ingress", "n", "i")
			create(t, s, store.Resource{Group: "example.com", Resource: "books"}, "example.com/v1", "Book", "n", "b")
			create(t, s, store.Resource{Group: store.Simulation, Resource: "machines"}, "simulated.cloud/v1", "Machine", "", "m")
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := newStore(t)
			for i := range 3 {
				create(t, s, configMap("").Resource, "v1", "ConfigMap", "n", fmt.Sprint(i))
			}
			test.last(s)
			db, log := parts(t, s, test.bump)
			d, err := ReadDirectory(bytes.NewReader(archive(t, map[string]io.Reader{
				"./member/snap/db": bytes.NewReader(db), "member/wal/0.wal": bytes.NewReader(log), "member/snap/x.snap": strings.NewReader("x"),
			})))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(currentOf(t, s), objectsOf(t, d)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if want := s.Revision() + test.bump; d.Content.Revision != want {
				t.Errorf("revision %d, want %d", d.Content.Revision, want)
			}
			if len(d.Members) != 1 || d.Members[0].ID != d.Self || d.Cluster == 0 || d.Members[0].PeerURLs[0] != databasetest.Placeholder {
				t.Errorf("members %+v, self %d of cluster %d", d.Members, d.Self, d.Cluster)
			}
		})
	}
}

// TestInvalidDirectories reads data directories that etcd or we cannot use.
func TestInvalidDirectories(t *testing.T) {
	s := newStore(t)
	db, log := parts(t, s, 0)
	withEntry := func(key []byte, kv mvccpb.KeyValue) []byte {
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, db, 0o600); err != nil {
			t.Fatal(err)
		}
		changed, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		value, err := kv.Marshal()
		if err == nil {
			err = changed.Update(func(tx *bolt.Tx) error { return tx.Bucket(keyBucket).Put(key, value) })
		}
		if err := errors.Join(err, changed.Close()); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	last := revisionKey(s.Revision()+1, false)
	protobuf := withEntry(last, mvccpb.KeyValue{Key: []byte("/registry/pods/n/x"), Value: []byte("k8s\x00")})
	odd := withEntry([]byte("odd"), mvccpb.KeyValue{Key: []byte("x")})
	zeroed := bytes.Clone(db)
	clear(zeroed[2*4096:])
	for _, test := range []struct {
		reason  string
		archive []byte
		want    string
	}{
		{"no archive", []byte("x"), "not a gzipped tar"},
		{"no database", archive(t, map[string]io.Reader{"member/wal/0.wal": bytes.NewReader(log)}), "no member/snap/db"},
		{"no log", archive(t, map[string]io.Reader{"member/snap/db": bytes.NewReader(db)}), "no log in member/wal"},
		{"a log without an identity", archive(t, map[string]io.Reader{
			"member/snap/db": bytes.NewReader(db), "member/wal/0.wal": bytes.NewReader(make([]byte, 100))}), "identity of a member"},
		{"an empty database", archive(t, map[string]io.Reader{"member/snap/db": strings.NewReader("")}), "the file is damaged"},
		{"no database at all", archive(t, map[string]io.Reader{"member/snap/db": strings.NewReader(strings.Repeat("x", 9000))}), "the file is damaged"},
		{"a database that ends too early", archive(t, map[string]io.Reader{"member/snap/db": bytes.NewReader(db[:2*4096])}), "the file is damaged"},
		{"a database with empty pages", archive(t, map[string]io.Reader{"member/snap/db": bytes.NewReader(zeroed)}), "the file is damaged"},
		{"objects in protobuf", archive(t, map[string]io.Reader{"member/snap/db": bytes.NewReader(protobuf)}), `the value of "/registry/pods/n/x" is not JSON`},
		{"a key that is no revision", archive(t, map[string]io.Reader{"member/snap/db": bytes.NewReader(odd)}), "a revision has 3 bytes"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if _, err := ReadDirectory(bytes.NewReader(test.archive)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
