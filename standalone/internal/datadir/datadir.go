// Package datadir owns the layout of a standalone management cluster's data directory: its lock, its private folders, the
// stored port and the unix sockets that connect the parts of the process.
//
// Write access to the directory means control over the cluster: it contains the CA's key and all Secrets. So Open only
// accepts a directory that is owned and writable only by this user (protect.go), and never follows symbolic links in it.
//
// This package handles paths, permissions and the lock. The contents of the files belong to the packages that write them.
package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// privateMode is the mode of every folder: the data directory contains keys and all Secrets of the cluster.
	privateMode = 0o700

	// lockTimeout is how long to try to take the lock, lockPause the time between two attempts.
	lockTimeout = time.Second
	lockPause   = 20 * time.Millisecond

	lockFile = "lock"
	portFile = "secure-port"

	// versionFile contains the Kubernetes version of the API server that last wrote the data.
	versionFile = "kubernetes-version"
)

// Dir is an open data directory, locked by one process at a time.
type Dir struct {
	root string
	lock *fileutil.LockedFile
	run  string // holds the sockets
}

// Open creates the directory if needed, locks it for this process and removes stale sockets of a killed process. It fails
//   - if the directory, or anything in it, belongs to another user, is writable by others, or is a link;
//   - if another process holds the lock; the error names the process;
//   - if its data was written by a Kubernetes API server of a newer minor version than the given one, which cannot
//     be read.
func Open(path, kubernetes string) (*Dir, error) {
	if path == "" {
		return nil, errors.New("--data-dir is empty")
	}
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := os.MkdirAll(root, privateMode); err != nil {
		return nil, fmt.Errorf("cannot create data directory %s, choose another one with --data-dir: %w", root, err)
	}
	if err := protect(root); err != nil {
		return nil, err
	}
	lock, err := takeLock(filepath.Join(root, lockFile))
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another capi serve%s: stop it, or choose another directory with --data-dir",
			root, holder(root))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write to data directory %s, choose another one with --data-dir: %w", root, err)
	}
	d := &Dir{root: root, lock: lock}
	if err = d.checkVersion(kubernetes); err == nil {
		err = d.prepare()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

// RemoveAbandoned deletes a folder with a data directory of this user in it that a killed process has left. It leaves it alone, and
// returns false, if a process still holds the lock, or if there is none.
func RemoveAbandoned(folder, name string) (bool, error) {
	info, err := os.Lstat(folder)
	if err != nil || owned(folder, info) != nil {
		return false, nil // Another process has removed it, or it is not ours.
	}
	lock, err := fileutil.TryLockFile(filepath.Join(folder, name, lockFile), os.O_RDWR, 0o600)
	if err != nil {
		return false, nil // In use, or not a data directory.
	}
	if err := errors.Join(os.RemoveAll(folder), lock.Close()); err != nil {
		return false, fmt.Errorf("removing %s, which a killed process has left: %w", folder, err)
	}
	return true, nil
}

// takeLock retries for lockTimeout: a killed process holds its locks until the kernel has cleaned it up.
func takeLock(path string) (*fileutil.LockedFile, error) {
	for began := time.Now(); ; time.Sleep(lockPause) {
		lock, err := fileutil.TryLockFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if !errors.Is(err, fileutil.ErrLocked) || time.Since(began) > lockTimeout {
			return lock, err
		}
	}
}

// checkVersion rejects data of a newer minor version, and stores the current version.
func (d *Dir) checkVersion(kubernetes string) error {
	ours, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return fmt.Errorf("parse this program's Kubernetes version: %w", err)
	}
	path := d.Path(versionFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return WriteFile(path, []byte(kubernetes+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("read the version of the data: %w", err)
	}
	written := strings.TrimSpace(string(raw))
	theirs, err := version.ParseGeneric(written)
	if err != nil {
		return fmt.Errorf("%s does not contain a Kubernetes version: %w", path, err)
	}
	if theirs.Major() > ours.Major() || theirs.Major() == ours.Major() && theirs.Minor() > ours.Minor() {
		return fmt.Errorf("data directory %s was written by a newer capi with Kubernetes %s, but this one has %s: "+
			"use the newer capi, or choose another directory with --data-dir",
			d.root, written, kubernetes)
	}
	if written == kubernetes {
		return nil
	}
	return WriteFile(path, []byte(kubernetes+"\n"), 0o600)
}

// prepare writes this process's ID into the lock, for the error of other processes, and creates the folder for sockets.
func (d *Dir) prepare() error {
	if err := d.lock.Truncate(0); err != nil {
		return fmt.Errorf("write the lock of %s: %w", d.root, err)
	}
	if _, err := d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return fmt.Errorf("write the lock of %s: %w", d.root, err)
	}
	run, err := makeRun(d.root)
	d.run = run
	return err
}

// Close removes the sockets and unlocks the directory.
func (d *Dir) Close() error {
	err := os.RemoveAll(d.run)
	_ = os.Remove(filepath.Join(d.root, runName)) // fails if it contains another process's sockets
	return errors.Join(err, d.lock.Close())
}

// Root is the absolute path of the directory.
func (d *Dir) Root() string { return d.root }

// Path joins elements to the directory's path.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.root}, elem...)...)
}

// Private creates, if needed, a folder that only this user can access, and returns its path.
func (d *Dir) Private(name string) (string, error) {
	path := d.Path(name)
	if err := os.MkdirAll(path, privateMode); err != nil {
		return "", fmt.Errorf("create %s: %w", path, err)
	}
	if err := os.Chmod(path, privateMode); err != nil {
		return "", fmt.Errorf("set the permissions of %s: %w", path, err)
	}
	return path, nil
}

// Port returns the port stored by SavePort, or 0.
func (d *Dir) Port() (int, error) {
	raw, err := os.ReadFile(d.Path(portFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the previous port: %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("%s does not contain a port number: remove it, or set --secure-port", d.Path(portFile))
	}
	return port, nil
}

// SavePort stores the port of the API server, so that kubeconfigs stay valid across restarts.
func (d *Dir) SavePort(port int) error {
	return WriteFile(d.Path(portFile), []byte(strconv.Itoa(port)+"\n"), 0o600)
}

// holder describes the process that holds the lock, if its ID can be read.
func holder(root string) string {
	raw, err := os.ReadFile(filepath.Join(root, lockFile))
	if err != nil || len(raw) == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %s)", strings.TrimSpace(string(raw)))
}

// WriteFile replaces a file atomically: readers see the old or the new content, even after a crash of the machine.
func WriteFile(path string, content []byte, mode os.FileMode) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
		}
	}()
	if _, err = tmp.Write(content); err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
