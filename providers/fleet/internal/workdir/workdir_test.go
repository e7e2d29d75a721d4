package workdir

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestNew(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "work")
	running, err := New(parent)
	testenv.Must(t, err)
	killed, err := New(parent)
	testenv.Must(t, err)
	for _, d := range []*Dir{running, killed} {
		testenv.Must(t, os.WriteFile(filepath.Join(d.Path, "etcd.db"), []byte("secret"), 0o600))
	}
	testenv.Must(t, killed.lock.Close()) // as the kernel does
	next, err := New(parent)
	testenv.Must(t, err)
	if _, err := os.Stat(filepath.Join(running.Path, "etcd.db")); err != nil {
		t.Errorf("that of a running process: %v", err)
	}
	if _, err := os.Stat(killed.Path); !os.IsNotExist(err) {
		t.Errorf("that of a killed process: %v", err)
	}
	if info, err := os.Stat(next.Path); err != nil || info.Mode().Perm() != 0o700 || next.Path == running.Path {
		t.Errorf("%v, %v", info, err)
	}
	testenv.Must(t, next.Remove())
	if _, err := os.Stat(next.Path); !os.IsNotExist(err) {
		t.Errorf("after its removal: %v", err)
	}
}
