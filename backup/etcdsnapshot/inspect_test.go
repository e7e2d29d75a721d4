package etcdsnapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// TestInspect compares what is read of a snapshot with what etcdutl reads.
func TestInspect(t *testing.T) {
	path, summary := filled(t)
	status, err := snapshot.NewV3(zap.NewNop()).Status(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	want := Info{
		Revision: status.Revision, CompactRevision: 202, Keys: status.TotalKey, Hash: status.Hash,
		StorageVersion: "3.6.0", ClusterVersion: "3.6.0", Summary: summary,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if status.TotalKey != 103 { // 200 - 100 ConfigMaps, x, s, compact_rev_key
		t.Errorf("the snapshot has %d keys", status.TotalKey)
	}
}

func TestInspectOlderVersions(t *testing.T) {
	path, _ := filled(t)
	newer, err := Inspect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	older := changed(t, path, func(tx *bbolt.Tx) error {
		return errors.Join(tx.Bucket([]byte(metaBucket)).Delete([]byte(storageVersionKey)),
			tx.Bucket([]byte(clusterBucket)).Put([]byte(clusterVersionKey), []byte("3.5.0")))
	})
	got, err := Inspect(t.Context(), older)
	if err != nil {
		t.Fatal(err)
	}
	want := newer
	want.StorageVersion, want.ClusterVersion = "", "3.5.0"
	want.Hash, want.Summary = got.Hash, got.Summary
	if diff := cmp.Diff(want, got); diff != "" || got.Hash == newer.Hash || got.SHA256 == newer.SHA256 {
		t.Error(diff)
	}
	drilled, err := Drill(t.Context(), older, t.TempDir(), nil)
	if err != nil || drilled.Keys != 102 {
		t.Errorf("a drill finds %+v, %v", drilled, err)
	}
}

// number writes a number into a database.
func number(database []byte, offset int, value any) []byte {
	changed := bytes.Clone(database)
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, value); err != nil {
		panic(err)
	}
	copy(changed[offset:], b.Bytes())
	return changed
}

// rootOf returns the page at the root of the tree of keys.
func rootOf(t *testing.T, path string) int {
	t.Helper()
	db, err := bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	root := 0
	if err := db.View(func(tx *bbolt.Tx) error {
		root = int(tx.Bucket([]byte(keyBucket)).Root())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return root
}

// The layout of bbolt's pages, and the flags of two sorts.
const (
	headerSize, elementSize = 16, 16
	branchPage, leafPage    = 0x01, 0x02
)

// TestDamagedPages has the damage that bbolt does not survive.
func TestDamagedPages(t *testing.T) {
	path, _ := filled(t)
	database := databaseOf(t, path)
	size := int(binary.LittleEndian.Uint32(database[headerSize+8:]))
	branch := rootOf(t, path) * size
	child := branch + headerSize + 8
	leaf := int(binary.LittleEndian.Uint64(database[child:])) * size
	if database[branch+8] != branchPage || database[leaf+8] != leafPage {
		t.Fatal("the database is too small")
	}
	tests := []struct {
		reason   string
		database []byte
	}{
		{"a branch that is its own child", number(database, child, uint64(branch/size))},
		{"a child behind the end", number(database, child, uint64(1<<40))},
		{"a child that is a meta page", number(database, child, uint64(0))},
		{"two branches with the same child", number(database, child, binary.LittleEndian.Uint64(database[child+elementSize:]))},
		{"an empty branch", number(database, branch+10, uint16(0))},
		{"more elements than fit", number(database, branch+10, uint16(60000))},
		{"a page of an unknown sort", number(database, leaf+8, uint16(0x40))},
		{"a page with another ID", number(database, leaf, uint64(leaf/size+1))},
		{"an overflow behind the end", number(database, leaf+12, uint32(1<<31))},
		{"a value behind the end", number(database, leaf+headerSize+12, uint32(1<<31))},
		{"a key behind the end", number(database, leaf+headerSize+4, ^uint32(0))},
		{"a value that claims to be a bucket", number(database, leaf+headerSize, uint32(1))},
		{"both meta pages", number(number(database, 20, uint32(9)), size+20, uint32(9))},
		{"fewer pages than the root has", bytes.Clone(database[:3*size])},
		{"zeros", make([]byte, len(database))},
		{"text", bytes.Repeat([]byte("apiVersion: v1\n#"), 1024)},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			damaged := rehashed(t, tc.database)
			_, err := Inspect(t.Context(), damaged)
			dir := filepath.Join(t.TempDir(), "data")
			restoreErr := Restore(t.Context(), damaged, dir, Options{Name: "m", PeerURL: "http://localhost:1"})
			_, drillErr := Drill(t.Context(), damaged, t.TempDir(), nil)
			for _, err := range []error{err, restoreErr, drillErr} {
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("got %v", err)
				}
			}
			if exists(dir) {
				t.Error("the data directory is left")
			}
		})
	}
}

func TestDamagedFiles(t *testing.T) {
	path, _ := filled(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(content []byte) string {
		path := filepath.Join(t.TempDir(), "snapshot.db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flipped := bytes.Clone(content)
	flipped[len(flipped)/2] ^= 1
	otherHash := bytes.Clone(content)
	otherHash[len(otherHash)-1] ^= 1
	tests := []struct {
		reason, path string
		want         error
	}{
		{"an empty file", write(nil), ErrTruncated},
		{"a file without a hash", write(content[:len(content)-hashSize]), ErrTruncated},
		{"a file that ends early", write(content[:len(content)-1]), ErrTruncated},
		{"a file that ends early at a block", write(content[:len(content)-alignment]), ErrDamaged},
		{"a flipped bit", write(flipped), ErrDamaged},
		{"another hash", write(otherHash), ErrDamaged},
		{"no file", filepath.Join(t.TempDir(), "missing"), os.ErrNotExist},
		{"a database of another program", changed(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(keyBucket)) }), ErrDamaged},
		{"a revision that is none", changed(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(keyBucket)).Put([]byte("zzz"), nil)
		}), ErrDamaged},
		{"a value that is no key with its value", changed(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(keyBucket)).Put([]byte("\x7f\x00\x00\x00\x00\x00\x00\x00_\x00\x00\x00\x00\x00\x00\x00\x00"), []byte("\xff\xff"))
		}), ErrDamaged},
		{"a compaction at no revision", changed(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(metaBucket)).Put([]byte(finishedCompaction), []byte("x"))
		}), ErrDamaged},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if _, err := Inspect(t.Context(), tc.path); !errors.Is(err, tc.want) {
				t.Errorf("Inspect: got %v, want %v", err, tc.want)
			}
			if _, err := Drill(t.Context(), tc.path, t.TempDir(), nil); !errors.Is(err, tc.want) {
				t.Errorf("Drill: got %v, want %v", err, tc.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Inspect(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}
