// Package workdir gives a process a directory for unencrypted snapshots, and removes those of processes that were killed.
package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

const (
	// pattern is that of the names of directories.
	pattern = "capi-fleet-*"
	// lockFile is a file in a directory that its process has locked: the kernel releases the lock when the process ends, however it ends.
	lockFile = "lock"
)

// Dir is the directory of this process.
type Dir struct {
	// Path is the path of the directory.
	Path string
	lock *fileutil.LockedFile
}

// New creates an empty directory below parent, by default the directory for temporary files, and removes those of processes that have
// ended.
func New(parent string) (*Dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory for snapshots: %w", err)
	}
	if err := clean(parent); err != nil {
		return nil, fmt.Errorf("removing directories for snapshots of earlier processes from %s: %w", parent, err)
	}
	path, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return nil, fmt.Errorf("creating a directory for snapshots: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the directory for snapshots %s: %w", path, err)
	}
	return &Dir{Path: path, lock: lock}, nil
}

// Remove removes the directory.
func (d *Dir) Remove() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// clean removes the directories whose processes have ended. One without a lock is being created, or of a process that was killed just then,
// and is empty.
func clean(parent string) error {
	locks, err := filepath.Glob(filepath.Join(parent, pattern, lockFile))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range locks {
		errs = append(errs, cleanOne(path))
	}
	return errors.Join(errs...)
}

func cleanOne(path string) error {
	lock, err := fileutil.TryLockFile(path, os.O_RDWR, 0)
	switch {
	case errors.Is(err, fileutil.ErrLocked), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil // Its process runs, or is another user's, or another process has removed it.
	case err != nil:
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Dir(path)), lock.Close())
}
