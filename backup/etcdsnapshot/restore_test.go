package etcdsnapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestRestore(t *testing.T) {
	path, _ := filled(t)
	info, err := Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	const bump = 1000000000
	dir := filepath.Join(t.TempDir(), "data")
	if err := Restore(t.Context(), path, dir, Options{Name: "new", PeerURL: "http://localhost:0", BumpRevision: bump, MarkCompacted: true}); err != nil {
		t.Fatal(err)
	}
	e := startEtcd(t, dir, "new")
	members, err := e.MemberList(t.Context())
	if err != nil || len(members.Members) != 1 || members.Members[0].Name != "new" {
		t.Errorf("members: %v, %v", members, err)
	}
	all, err := e.Get(t.Context(), "/registry/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if all.Header.Revision < info.Revision+bump || len(all.Kvs) != 102 {
		t.Errorf("%d keys at revision %d, want 102 at %d", len(all.Kvs), all.Header.Revision, info.Revision+bump)
	}
	one, err := e.Get(t.Context(), "/registry/a.example.com/a/x")
	if err != nil || len(one.Kvs) != 1 || string(one.Kvs[0].Value) != string(jsonObject(t, "x")) {
		t.Errorf("got %v, %v", one, err)
	}
	// A controller that watches from a revision it knows must list again.
	watched := <-e.Watch(t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithRev(info.Revision))
	if !errors.Is(watched.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watch from before the restore: %v", watched.Err())
	}
	e.stop()
	again := filepath.Join(t.TempDir(), "again")
	if err := Restore(t.Context(), path, again, Options{Name: "new", PeerURL: "http://localhost:0"}); err != nil {
		t.Fatal(err)
	}
	e = startEtcd(t, again, "new")
	if all, err := e.Get(t.Context(), "a"); err != nil || all.Header.Revision != info.Revision {
		t.Errorf("without a bump: %v, %v", all, err)
	}
	path, _ = e.snapshot(t)
	if _, err := Inspect(t.Context(), path); err != nil {
		t.Errorf("a snapshot of what was restored: %v", err)
	}
}

// TestSnapshotOfBumped inspects a snapshot of an etcd that was restored with a bump.
func TestSnapshotOfBumped(t *testing.T) {
	path, _ := filled(t)
	before, err := Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := Restore(t.Context(), path, dir, Options{Name: "n", PeerURL: "http://localhost:0", BumpRevision: 1000, MarkCompacted: true}); err != nil {
		t.Fatal(err)
	}
	again, _ := startEtcd(t, dir, "n").snapshot(t)
	after, err := Inspect(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if after.Keys != before.Keys || after.Revision != before.Revision+1000 || after.CompactRevision != after.Revision {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestRestoreErrors(t *testing.T) {
	path, _ := filled(t)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	empty := t.TempDir()
	tests := []struct {
		reason  string
		ctx     context.Context
		dir     string
		options Options
		want    string
	}{
		{"a directory with files", t.Context(), full, Options{Name: "m", PeerURL: "http://a:1"}, "is not empty"},
		{"a directory that is a file", t.Context(), filepath.Join(full, "file"), Options{Name: "m", PeerURL: "http://a:1"}, "reading data directory"},
		{"a bump without marking", t.Context(), empty, Options{Name: "m", PeerURL: "http://a:1", BumpRevision: 1}, "together with marking"},
		{"marking without a bump", t.Context(), empty, Options{Name: "m", PeerURL: "http://a:1", MarkCompacted: true}, "together with marking"},
		{"a bump that is too large", t.Context(), empty, Options{Name: "m", PeerURL: "http://a:1", BumpRevision: 1 << 63, MarkCompacted: true}, "together with marking"},
		{"an address that is none", t.Context(), empty, Options{Name: "m", PeerURL: "a"}, "restoring the snapshot into"},
		{"no name", t.Context(), empty, Options{PeerURL: "http://a:1"}, "must be set"},
		{"a name that cannot be in a list of members", t.Context(), empty, Options{Name: "a=b,c", PeerURL: "http://a:1"}, "restoring the snapshot into"},
		{"a context that has ended", ended, empty, Options{Name: "m", PeerURL: "http://a:1"}, "context canceled"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if err := Restore(tc.ctx, path, tc.dir, tc.options); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
			if !exists(filepath.Join(full, "file")) {
				t.Error("the file in the directory is deleted")
			}
		})
	}
}
