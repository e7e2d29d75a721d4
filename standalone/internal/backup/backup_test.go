package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	gocmp "github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/backup/archive"
	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// source returns a data directory with objects in etcd, and files.
func source(t *testing.T, objects map[string]string) Source {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"pki/ca.key": "key", "secure-port": "6443\n", "lock": "1", "capi.log": "log",
		"components/ns/manager/a.journal": "a\n", "components/ns/manager/b.journal.new": "unfinished",
	} {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	storage := openEtcd(t, filepath.Join(root, "etcd"))
	for key, value := range objects {
		if _, err := storage.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	return Source{Root: root, Keys: filepath.Join(root, "encryption-keys.yaml"), Storage: storage.Client,
		Capi: "v2.0.0", Kubernetes: "v1.36.3", Now: func() time.Time { return now }}
}

func openEtcd(t *testing.T, dir string) *controlplane.Storage {
	t.Helper()
	sockets, err := os.MkdirTemp("", "backup") //nolint:usetesting // Paths of sockets are limited.
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	storage, err := controlplane.OpenStorage(t.Context(), dir, filepath.Join(sockets, "s"), io.Discard)
	must(t, err)
	t.Cleanup(func() { _ = storage.Close() })
	return storage
}

func key(t *testing.T) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	return identity
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func target(root string) Target {
	return Target{Root: root, Kubernetes: "v1.36.4", Now: now.Add(time.Hour)}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	cluster := func(fields string) string {
		return `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":` + fields + `}`
	}
	s := source(t, map[string]string{
		clusters + "ns/a":      cluster(`{"name":"a","namespace":"ns"},"spec":{"n":1.5,"i":9007199254740993}`),
		clusters + "ns/paused": cluster(`{"name":"paused","namespace":"ns","annotations":{"x":"y"}},"spec":{"paused":true}`),
		clusters + "ns/gone":   cluster(`{"name":"gone","namespace":"ns","deletionTimestamp":"2026-01-01T00:00:00Z"}`),
		namers()[0] + "ns/set": `{"kind":"MachineSet","metadata":{"name":"set"}}`,
		"/registry/other":      "left alone",
	})
	identity := key(t)
	var file bytes.Buffer
	saved, err := s.Save(t.Context(), &file, []age.Recipient{identity.Recipient()})
	must(t, err)
	root := filepath.Join(t.TempDir(), "new", "mgmt")
	restored, err := target(root).Restore(t.Context(), &file, []age.Identity{identity})
	must(t, err)
	if diff := gocmp.Diff(Restored{Manifest: saved, Paused: []string{"ns/a"}}, restored); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(map[string]string{
		"pki/ca.key": "key", "secure-port": "6443\n", "components/ns/manager/a.journal": "a\n", "kubernetes-version": "v1.36.3\n",
	}, filesOf(t, root)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if left, _ := os.ReadDir(filepath.Dir(root)); len(left) != 1 {
		t.Errorf("beside the data directory is %v", left)
	}
	etcd := openEtcd(t, filepath.Join(root, "etcd"))
	const mark = `"cluster.x-k8s.io/restored":"2026-01-02T04:04:05Z"`
	for k, want := range map[string]string{
		clusters + "ns/a": `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"annotations":{"cluster.x-k8s.io/paused-by-restore":` +
			`"2026-01-02T03:04:05Z",` + mark + `},"name":"a","namespace":"ns"},"spec":{"i":9007199254740993,"n":1.5,"paused":true}}`,
		clusters + "ns/paused": `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"annotations":{` + mark +
			`,"x":"y"},"name":"paused","namespace":"ns"},"spec":{"paused":true}}`,
		clusters + "ns/gone": `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"annotations":{` + mark +
			`},"deletionTimestamp":"2026-01-01T00:00:00Z","name":"gone","namespace":"ns"}}`,
		namers()[0] + "ns/set": `{"kind":"MachineSet","metadata":{"annotations":{` + mark + `},"name":"set"}}`,
		"/registry/other":      "left alone",
	} {
		got, err := etcd.Get(t.Context(), k)
		must(t, err)
		if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != want {
			t.Errorf("%s is %v, want %s", k, got.Kvs, want)
		}
		if got.Header.Revision < saved.Revision+1_000_000_000 {
			t.Errorf("revision %d does not follow that of the backup, %d", got.Header.Revision, saved.Revision)
		}
	}
}

// filesOf returns the files of a folder, without those of etcd.
func filesOf(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "etcd" {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("%s has mode %s, %w", path, info.Mode(), err)
		}
		if entry.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		found[name] = string(content)
		return err
	}))
	return found
}

// What is in a data directory is never touched, and nothing is left of a backup that cannot be restored.
func TestRefused(t *testing.T) {
	t.Parallel()
	identity := key(t)
	written := func(entries ...string) []byte {
		var file bytes.Buffer
		w, err := archive.NewWriter(&file, identity.Recipient())
		must(t, err)
		for i := 0; i < len(entries); i += 2 {
			must(t, w.Add(entries[i], int64(len(entries[i+1])), strings.NewReader(entries[i+1])))
		}
		must(t, w.Close())
		return file.Bytes()
	}
	const ours = `{"kind": "capi-data-directory", "format": 1, "kubernetes": "v1.36.0", "capi": "v2.0.0"}`
	sparse := func() string {
		var content bytes.Buffer
		w := tar.NewWriter(&content)
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "big", Size: 1 << 40, Mode: 0o600}))
		return content.String()
	}
	hostile := func(name string) string {
		var content bytes.Buffer
		w := tar.NewWriter(&content)
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 1, Mode: 0o600}))
		_, err := w.Write([]byte("x"))
		must(t, errors.Join(err, w.Close()))
		return content.String()
	}
	good := written(manifestEntry, ours, etcdEntry, strings.Repeat("x", 4096))
	tests := []struct {
		reason string
		file   []byte
		free   uint64
		is     error
		want   string
	}{
		{reason: "another file", file: []byte("hello"), is: archive.ErrNotArchive},
		{reason: "a backup of something else", file: written("cluster.json", "{}"), is: ErrOther},
		{reason: "an archive with another manifest", file: written(manifestEntry, "{}"), is: ErrOther},
		{reason: "a format of the future", file: written(manifestEntry, strings.Replace(ours, `"format": 1`, `"format": 2`, 1)),
			want: "format 2 of a newer capi (v2.0.0)"},
		{reason: "a newer minor version of Kubernetes", file: written(manifestEntry, strings.Replace(ours, "v1.36.0", "v1.37.0", 1)),
			want: "with Kubernetes v1.37.0, but this one has v1.36.4: use the newer capi"},
		{reason: "without etcd", file: written(manifestEntry, ours), is: archive.ErrDamaged, want: "it has no etcd.db"},
		{reason: "an unknown entry", file: written(manifestEntry, ours, "pki/a/b", "x"), is: archive.ErrDamaged},
		{reason: "a file of a component outside its folder", file: written(manifestEntry, ours, componentsEntry, hostile("../../evil")),
			want: `contains "../../evil", which is not a file in its folder`},
		{reason: "a file of a component that is larger than the archive", file: written(manifestEntry, ours, componentsEntry, sparse()),
			want: "files that are larger than it"},
		{reason: "truncated", file: good[:len(good)-1], is: archive.ErrTruncated, want: "nothing was changed"},
		{reason: "damaged", file: append(bytes.Clone(good[:len(good)-100]), make([]byte, 100)...), is: archive.ErrDamaged},
		{reason: "a snapshot with another hash", file: good, want: "restore etcd's data: "},
		{reason: "a full disk", file: good, free: 1 << 20, is: syscall.ENOSPC, want: "needs 256 MiB, and 1 MiB are free"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			to := target(filepath.Join(parent, "mgmt"))
			to.Free = func(string) (uint64, error) { return cmp.Or(test.free, 1<<40), nil }
			_, err := to.Restore(t.Context(), bytes.NewReader(test.file), []age.Identity{identity})
			if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q, %v", err, test.want, test.is)
			}
			if left, _ := os.ReadDir(parent); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	t.Run("the wrong key", func(t *testing.T) {
		t.Parallel()
		_, err := target(filepath.Join(t.TempDir(), "x")).Restore(t.Context(), bytes.NewReader(good), []age.Identity{key(t)})
		if !errors.Is(err, archive.ErrWrongKey) {
			t.Error(err)
		}
	})
	t.Run("a directory that is not empty", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		must(t, os.WriteFile(filepath.Join(root, "mine"), []byte("x"), 0o600))
		_, err := target(root).Restore(t.Context(), bytes.NewReader(good), []age.Identity{identity})
		if err == nil || !strings.Contains(err.Error(), "is not empty: move it away") {
			t.Error(err)
		}
		if left, _ := os.ReadDir(root); len(left) != 1 || left[0].Name() != "mine" {
			t.Errorf("the directory has %v", left)
		}
	})
}

// Secrets that nothing can decrypt are noticed when they are saved, not when they are restored.
func TestKeysAreMissing(t *testing.T) {
	t.Parallel()
	s := source(t, map[string]string{"/registry/secrets/ns/s": "k8s:enc:secretbox:v1:20260101T000000Z:xyz"})
	_, err := s.Save(t.Context(), io.Discard, []age.Recipient{key(t).Recipient()})
	if err == nil || !strings.Contains(err.Error(), "20260101T000000Z) that are missing in "+s.Keys+": set --encryption-keys") {
		t.Error(err)
	}
}

func TestFileIsCompleteOrMissing(t *testing.T) {
	t.Parallel()
	s := source(t, nil)
	folder := t.TempDir()
	path := filepath.Join(folder, "mgmt.backup")
	recipients := []age.Recipient{key(t).Recipient()}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.SaveFile(ended, path, recipients); err == nil {
		t.Error("it was saved although it was interrupted")
	}
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	_, size, err := s.SaveFile(t.Context(), path, recipients)
	must(t, err)
	before, err := os.ReadFile(path)
	must(t, err)
	if int64(len(before)) != size {
		t.Errorf("the size is %d, not %d", len(before), size)
	}
	if _, _, err := s.SaveFile(t.Context(), path, recipients); err == nil || !strings.Contains(err.Error(), "exists, and is not replaced") {
		t.Error(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("an earlier backup was changed")
	}
}

// Files of components are those that were opened, whatever happens to them later.
func TestComponentsChangeMeanwhile(t *testing.T) {
	t.Parallel()
	root, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	long := strings.Repeat("x", 150)
	for name, content := range map[string]string{"removed": "1", "replaced": "2", "grows": "3", "empty": "", "ns/" + long: "4"} {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	files, err := openFolder(root)
	must(t, err)
	must(t, os.Remove(filepath.Join(root, "removed")))
	must(t, os.WriteFile(filepath.Join(root, "new"), []byte("other"), 0o600))
	must(t, os.Rename(filepath.Join(root, "new"), filepath.Join(root, "replaced")))
	must(t, os.WriteFile(filepath.Join(root, "grows"), []byte("3 and more"), 0o600))
	content, err := io.ReadAll(files.Reader())
	must(t, err)
	if int64(len(content)) != files.size {
		t.Errorf("%d bytes, but %d were announced", len(content), files.size)
	}
	must(t, extract(bytes.NewReader(content), files.size, to))
	want := map[string]string{"removed": "1", "replaced": "2", "grows": "3", "empty": "", "ns/" + long: "4"}
	if diff := gocmp.Diff(want, filesOf(t, to)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	must(t, files.Close())
}
