package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// Existing is a data directory that exists, and may be in use by another process.
type Existing struct {
	// Root is the absolute path of the directory.
	Root string
	// Process is the ID of the process that has the directory open; 0 if there is none.
	Process int
	// Kubernetes is the version of the API server that last wrote the data; empty if there is no data.
	Kubernetes string
}

// Find checks a data directory without changing anything in it. It fails if there is none, and if Open would reject it because of its
// owner, permissions or links.
func Find(path string) (Existing, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return Existing{}, fmt.Errorf("data directory %s: %w", path, err)
	}
	lock := filepath.Join(root, lockFile)
	if _, err := os.Lstat(lock); errors.Is(err, fs.ErrNotExist) {
		return Existing{}, fmt.Errorf("%s is not a data directory of capi: set --data-dir to that of capi serve", root)
	} else if err != nil {
		return Existing{}, fmt.Errorf("data directory %s: %w", root, err)
	}
	if err := protect(root); err != nil {
		return Existing{}, err
	}
	written, err := os.ReadFile(filepath.Join(root, versionFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Existing{}, fmt.Errorf("read the version of the data: %w", err)
	}
	found := Existing{Root: root, Kubernetes: strings.TrimSpace(string(written))}
	held, err := fileutil.TryLockFile(lock, os.O_RDWR, 0o600)
	if err == nil {
		return found, held.Close()
	}
	if !errors.Is(err, fileutil.ErrLocked) {
		return Existing{}, fmt.Errorf("data directory %s: %w", root, err)
	}
	raw, err := os.ReadFile(lock)
	if err != nil {
		return Existing{}, fmt.Errorf("data directory %s: %w", root, err)
	}
	if found.Process, err = strconv.Atoi(strings.TrimSpace(string(raw))); err != nil || found.Process < 1 {
		return Existing{}, fmt.Errorf("the capi that uses data directory %s is starting: run the command again", root)
	}
	return found, nil
}

// Socket returns the path of the unix socket with that name of the process that has the directory open.
func (e Existing) Socket(name string) string {
	run := filepath.Join(e.Root, runName)
	if temporary, err := os.Readlink(run); err == nil {
		return filepath.Join(temporary, name+".sock")
	}
	return filepath.Join(run, strconv.Itoa(e.Process), name+".sock")
}

// Path joins elements to the directory's path.
func (e Existing) Path(elem ...string) string {
	return filepath.Join(append([]string{e.Root}, elem...)...)
}
