package datadir_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

func open(t *testing.T, path string) *datadir.Dir {
	t.Helper()
	d, err := datadir.Open(path, "v1.36.0")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOneProcessHoldsADirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mgmt")
	first := open(t, path)
	_, err := datadir.Open(path, "v1.36.0")
	want := "data directory " + path + " is in use by another capi serve (process " + strconv.Itoa(os.Getpid()) +
		"): stop it, or choose another directory with --data-dir"
	if err == nil || err.Error() != want {
		t.Errorf("opening it twice: got %v, want %s", err, want)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Close(); err != nil {
		t.Errorf("a closed directory can be opened again: %v", err)
	}
}

// What a killed process has left is removed, and nothing else.
func TestRemoveAbandoned(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason  string
		prepare func(t *testing.T, folder string)
		want    bool
	}{
		{reason: "its process was killed", want: true, prepare: func(t *testing.T, folder string) {
			t.Helper()
			dir, err := datadir.Open(filepath.Join(folder, "copy"), "v1.36.3")
			if err != nil {
				t.Fatal(err)
			}
			if err := dir.Close(); err != nil { // which leaves its files, as the kernel does
				t.Fatal(err)
			}
		}},
		{reason: "its process runs", prepare: func(t *testing.T, folder string) {
			t.Helper()
			dir, err := datadir.Open(filepath.Join(folder, "copy"), "v1.36.3")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = dir.Close() })
		}},
		{reason: "no data directory", prepare: func(*testing.T, string) {}},
	} {
		folder := t.TempDir()
		tc.prepare(t, folder)
		removed, err := datadir.RemoveAbandoned(folder, "copy")
		_, left := os.Stat(folder)
		if err != nil || removed != tc.want || (left != nil) != tc.want {
			t.Errorf("%s: removed: %t, error %v; the folder: %v", tc.reason, removed, err, left)
		}
	}
}

func TestDataOfNewerVersionsIsRejected(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, test := range []struct {
		reason, version string
		refused         bool
	}{
		{"a new directory accepts every version", "v1.36.3", false},
		{"a newer version can use it", "v1.37.0", false},
		{"an older patch version can use it", "v1.37.2", false},
		{"an older minor version is rejected", "v1.36.9", true},
		{"a rejected start changes nothing", "v1.37.0", false},
		{"an older major version is rejected", "v0.99.0", true},
	} {
		d, err := datadir.Open(root, test.version)
		if (err != nil) != test.refused {
			t.Errorf("%s: %v", test.reason, err)
		}
		if err == nil {
			err = d.Close()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSockets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason string
		path   string
	}{
		{"sockets are in the directory", "mgmt"},
		{"a path that is too long for sockets works too", strings.Repeat("long/", 40)},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), test.path)
			abandoned := open(t, root).Socket("etcd") // as a process that was killed leaves it...
			release(t, root)
			d := open(t, root)
			listener, err := net.Listen("unix", d.Socket("etcd"))
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			info, err := os.Stat(filepath.Dir(d.Socket("etcd")))
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != 0o700 {
				t.Errorf("the folder of the sockets has mode %o, others could connect", got)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			for _, socket := range []string{abandoned, d.Socket("etcd")} {
				if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
					t.Errorf("%s should be deleted: %v", filepath.Dir(socket), err)
				}
			}
		})
	}
}

// A directory prepared by another user is rejected, and nothing outside it is changed.
func TestHostileDirectories(t *testing.T) {
	t.Parallel()
	victim := func(t *testing.T) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "victim")
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	alike := func(root string) string {
		return filepath.Join(os.TempDir(), fmt.Sprintf("capi-alike-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(root))))
	}
	tests := []struct {
		reason string
		// plant prepares the directory; victim is a file elsewhere.
		plant func(root, victim string) error
		// want is in the error. Empty: the directory is accepted.
		want string
	}{
		{"it is writable by others", func(root, _ string) error { return os.Chmod(root, 0o777) }, "is writable by other users (drwxrwxrwx)"},
		{"it is writable by the group", func(root, _ string) error { return os.Chmod(root, 0o770) }, "is writable by other users"},
		{"it is readable by others: their access is removed", func(root, _ string) error { return os.Chmod(root, 0o755) }, ""},
		{"the lock is a symbolic link", func(root, v string) error { return os.Symlink(v, filepath.Join(root, "lock")) }, "lock is a symbolic link"},
		{"the lock is a hard link", func(root, v string) error { return os.Link(v, filepath.Join(root, "lock")) }, "has hard links elsewhere"},
		{"the log is a symbolic link", func(root, v string) error { return os.Symlink(v, filepath.Join(root, "capi.log")) }, "capi.log is a symbolic link"},
		{"keys are links", func(root, v string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, "pki"), 0o700), os.Symlink(v, filepath.Join(root, "pki", "ca.key")))
		}, "ca.key is a symbolic link"},
		{"a folder is a link", func(root, v string) error { return os.Symlink(filepath.Dir(v), filepath.Join(root, "etcd")) }, "etcd is a symbolic link"},
		{"the sockets link to a folder of another user", func(root, v string) error {
			return os.Symlink(filepath.Dir(v), filepath.Join(root, "run"))
		}, ""},
		{"the sockets link to a folder with a name like ours", func(root, v string) error {
			return errors.Join(os.Symlink(filepath.Dir(v), alike(root)), os.Symlink(alike(root), filepath.Join(root, "run")))
		}, ""},
		{"it is a file", func(root, _ string) error {
			return errors.Join(os.Remove(root), os.WriteFile(root, nil, 0o600))
		}, "cannot create data directory"},
		{"it belongs to another user", func(root, _ string) error { return os.Chown(root, 65534, 65534) }, "belongs to another user (UID 65534"},
		{"a file in it belongs to another user", func(root, _ string) error {
			path := filepath.Join(root, "kubernetes-version")
			return errors.Join(os.WriteFile(path, []byte("v1.36.0"), 0o600), os.Chown(path, 65534, 65534))
		}, "kubernetes-version belongs to another user"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			root, precious := t.TempDir(), victim(t)
			t.Cleanup(func() { _ = os.Remove(alike(root)) })
			err := test.plant(root, precious)
			if errors.Is(err, os.ErrPermission) {
				t.Skip("only the superuser can change the owner of files")
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := datadir.Open(root, "v1.36.0")
			switch {
			case test.want == "" && err != nil:
				t.Errorf("it should be accepted: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if d != nil {
				if info, err := os.Stat(root); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("the directory should be private: %v, %v", info, err)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
			if content, err := os.ReadFile(precious); err != nil || string(content) != "precious" {
				t.Errorf("a file elsewhere was changed: %q, %v", content, err)
			}
		})
	}
}

// release releases the lock of a directory that is still open, like the end of its process.
func release(t *testing.T, root string) {
	t.Helper()
	if err := os.Remove(filepath.Join(root, "lock")); err != nil {
		t.Fatal(err)
	}
}

func TestPortIsRemembered(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	if port, err := d.Port(); port != 0 || err != nil {
		t.Errorf("nothing is remembered yet: got %d, %v", port, err)
	}
	if err := d.SavePort(6443); err != nil {
		t.Fatal(err)
	}
	if port, err := d.Port(); port != 6443 || err != nil {
		t.Errorf("got %d, %v, want 6443", port, err)
	}
	if err := os.WriteFile(d.Path("secure-port"), []byte("many"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := d.Path("secure-port") + " does not contain a port number: remove it, or set --secure-port"
	if _, err := d.Port(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, content := range []string{"first", "second"} {
		if err := datadir.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("got %q, %v, want %q", got, err, content)
		}
	}
	if err := datadir.WriteFile(dir, []byte("x"), 0o600); err == nil {
		t.Error("writing over a folder should fail")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("only the file should be left, got %v, %v", entries, err)
	}
}
