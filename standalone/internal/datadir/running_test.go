package datadir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
)

func TestFind(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "mgmt")
	find := func() (datadir.Existing, error) { return datadir.Find(root) }
	if _, err := find(); err == nil || !strings.Contains(err.Error(), "is not a data directory of capi") {
		t.Errorf("there is none: %v", err)
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("it was created: %v", err)
	}
	dir, err := datadir.Open(root, "v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	found, err := find()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(datadir.Existing{Root: root, Process: os.Getpid(), Kubernetes: "v1.36.3"}, found); diff != "" {
		t.Errorf("while it is open (-want +got):\n%s", diff)
	}
	if got := found.Socket("etcd"); got != dir.Socket("etcd") {
		t.Errorf("the socket is %s, want %s", got, dir.Socket("etcd"))
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err = find(); err != nil || found.Process != 0 {
		t.Errorf("while it is closed: %v, %v", found, err)
	}
	if err := os.Chmod(root, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := find(); err == nil || !strings.Contains(fmt.Sprint(err), "is writable by other users") {
		t.Errorf("others can write to it: %v", err)
	}
}

// With a long path, sockets are in a temporary folder.
func TestSocketsOfLongPaths(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	dir, err := datadir.Open(root, "v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	found, err := datadir.Find(root)
	if err != nil || found.Socket("etcd") != dir.Socket("etcd") {
		t.Errorf("the socket is %s, want %s, %v", found.Socket("etcd"), dir.Socket("etcd"), err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}
