// Package datadir owns the layout of a standalone management cluster's data directory: its lock, the private
// folders in it, the port it remembers and the unix sockets that the parts of the process meet on.
//
// Whoever can write to the directory owns the cluster: it holds the CA's key and every Secret. So Open accepts only a
// directory that belongs to this user alone (protect.go), and nothing in it is reached through a symbolic link.
//
// What belongs here: paths, permissions and the lock. What is in the files belongs to the packages that write them.
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
	// privateMode of every folder this package makes: the data directory holds keys and all Secrets of the cluster.
	privateMode = 0o700

	// lockPatience is how long a lock that is held is tried for, lockPause the time in between.
	lockPatience = time.Second
	lockPause    = 20 * time.Millisecond

	lockFile = "lock"
	portFile = "secure-port"

	// versionFile holds the version of Kubernetes whose API server wrote the data last.
	versionFile = "kubernetes-version"
)

// Dir is an open data directory. It belongs to one process at a time.
type Dir struct {
	root string
	lock *fileutil.LockedFile
	run  string // holds the sockets
}

// Open makes the directory if needed, locks it for this process and removes the sockets that a killed process left.
// It fails
//   - when the directory, or anything in it, belongs to another user, can be written by others, or is a link;
//   - when another process holds the directory, naming that process;
//   - when its data was written by a Kubernetes API server of a newer minor version than the one given: such data
//     cannot be read back.
func Open(path, kubernetes string) (*Dir, error) {
	if path == "" {
		return nil, errors.New("the data directory is empty: name one with --data-dir")
	}
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	if err := os.MkdirAll(root, privateMode); err != nil {
		return nil, fmt.Errorf("data directory %s cannot be made, choose another one with --data-dir: %w", root, err)
	}
	if err := protect(root); err != nil {
		return nil, err
	}
	lock, err := takeLock(filepath.Join(root, lockFile))
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another capi serve%s: stop that one, or choose another directory with --data-dir",
			root, holder(root))
	}
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written, choose another one with --data-dir: %w", root, err)
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

// takeLock tries for a moment: a process that was just killed holds its locks until the system has taken it apart.
func takeLock(path string) (*fileutil.LockedFile, error) {
	for began := time.Now(); ; time.Sleep(lockPause) {
		lock, err := fileutil.TryLockFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if !errors.Is(err, fileutil.ErrLocked) || time.Since(began) > lockPatience {
			return lock, err
		}
	}
}

// checkVersion refuses data of a newer minor version, and notes the one that writes from now on.
func (d *Dir) checkVersion(kubernetes string) error {
	ours, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return fmt.Errorf("this program's version of Kubernetes: %w", err)
	}
	path := d.Path(versionFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return WriteFile(path, []byte(kubernetes+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("reading the version of the data: %w", err)
	}
	written := strings.TrimSpace(string(raw))
	theirs, err := version.ParseGeneric(written)
	if err != nil {
		return fmt.Errorf("%s does not hold a version of Kubernetes: %w", path, err)
	}
	if theirs.Major() > ours.Major() || theirs.Major() == ours.Major() && theirs.Minor() > ours.Minor() {
		return fmt.Errorf("data directory %s was written by a newer capi, with Kubernetes %s, and this one has %s: use the newer capi, or choose another directory with --data-dir",
			d.root, written, kubernetes)
	}
	if written == kubernetes {
		return nil
	}
	return WriteFile(path, []byte(kubernetes+"\n"), 0o600)
}

// prepare writes this process's ID into the lock, for the message that another process prints, and makes the folder for
// sockets.
func (d *Dir) prepare() error {
	if err := d.lock.Truncate(0); err != nil {
		return fmt.Errorf("writing the lock of %s: %w", d.root, err)
	}
	if _, err := d.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return fmt.Errorf("writing the lock of %s: %w", d.root, err)
	}
	run, err := makeRun(d.root)
	d.run = run
	return err
}

// Close removes the sockets and gives the directory free for another process.
func (d *Dir) Close() error {
	err := os.RemoveAll(d.run)
	_ = os.Remove(filepath.Join(d.root, runName)) // stays when it holds another process's sockets
	return errors.Join(err, d.lock.Close())
}

// Root is the absolute path of the directory.
func (d *Dir) Root() string { return d.root }

// Path joins elements to the directory's path.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.root}, elem...)...)
}

// Private makes (if needed) a folder of the directory that only this user can enter, and returns its path.
func (d *Dir) Private(name string) (string, error) {
	path := d.Path(name)
	if err := os.MkdirAll(path, privateMode); err != nil {
		return "", fmt.Errorf("making %s: %w", path, err)
	}
	if err := os.Chmod(path, privateMode); err != nil {
		return "", fmt.Errorf("making %s private: %w", path, err)
	}
	return path, nil
}

// Port returns the port remembered by SavePort, or 0.
func (d *Dir) Port() (int, error) {
	raw, err := os.ReadFile(d.Path(portFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the remembered port: %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("%s does not hold a port number: remove it, or give --secure-port", d.Path(portFile))
	}
	return port, nil
}

// SavePort remembers the port that the API server listens on, so that kubeconfigs stay valid over restarts.
func (d *Dir) SavePort(port int) error {
	return WriteFile(d.Path(portFile), []byte(strconv.Itoa(port)+"\n"), 0o600)
}

// holder describes the process that wrote the lock, when it can be read.
func holder(root string) string {
	raw, err := os.ReadFile(filepath.Join(root, lockFile))
	if err != nil || len(raw) == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %s)", strings.TrimSpace(string(raw)))
}

// WriteFile replaces a file in one step: readers see the old content or the new, also when the machine stops halfway.
func WriteFile(path string, content []byte, mode os.FileMode) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
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
