package datadir

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeletedFilesAreIgnored removes an entry after it was listed, as a process that uses the directory may.
func TestDeletedFilesAreIgnored(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(root, "etcd.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	listed, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason, path string
		err          error
		fails        bool
	}{
		{"a file was removed after the folder was read", path, nil, false},
		{"a folder was removed before it was read", path, fs.ErrNotExist, false},
		{"a folder cannot be read", path, fs.ErrPermission, true},
		{"the directory itself does not exist", root, fs.ErrNotExist, true},
	} {
		if err := check(root)(c.path, listed[0], c.err); (err != nil) != c.fails {
			t.Errorf("%s: err = %v, want one: %t", c.reason, err, c.fails)
		}
	}
}

// TestALinkIsRejected: files behind a link would not be checked.
func TestALinkIsRejected(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	directory := filepath.Join(folder, "real")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(directory, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(directory, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(link, "v1.36.0"); err == nil || !strings.Contains(err.Error(), "is a symbolic link: set --data-dir") {
		t.Errorf("err = %v, want that it is a link", err)
	}
}
