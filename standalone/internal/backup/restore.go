package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"sigs.k8s.io/cluster-api/backup/archive"
	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
	"sigs.k8s.io/cluster-api/standalone/internal/encryption"
)

// spare is how much must be free on the disk besides what a restore writes, in bytes: etcd preallocates its log.
const spare = 256 << 20

// private is the mode of folders.
const private fs.FileMode = 0o700

// Target is where Restore restores to.
type Target struct {
	// Root is the data directory, which must not exist, or be empty.
	Root string
	// Keys is the file to write the keys for Secrets to. Empty: as usual, in Root.
	Keys string
	// Kubernetes is the version of this program's API server.
	Kubernetes string
	// Now is the time of the restore.
	Now time.Time
	// Free returns how many bytes are free on the disk of a folder. Nil: it is asked.
	Free func(folder string) (uint64, error)
	// Progress receives how many bytes of the database were written, of how many. Nil: it is not reported.
	Progress func(done, total int64)
}

// Restored describes what was restored.
type Restored struct {
	Manifest
	// Paused are the Clusters that were paused until they have been compared with what runs, as namespace/name.
	Paused []string
}

// Restore creates a data directory from a backup. At any point before it returns, also if the process is killed, there is either nothing at
// Root, or the complete directory.
func (t Target) Restore(ctx context.Context, backup io.Reader, identities []age.Identity) (r Restored, err error) {
	root, err := filepath.Abs(t.Root)
	if err != nil {
		return r, fmt.Errorf("data directory %s: %w", t.Root, err)
	}
	t.Root = root
	if err := t.check(); err != nil {
		return r, err
	}
	work, err := openWork(root)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, work.close()) }()
	w := &restore{Target: t, work: work, data: filepath.Join(work.path, "data")}
	if err := os.Mkdir(w.data, 0o700); err != nil {
		return r, fmt.Errorf("create the data directory: %w", err)
	}
	if r.Manifest, err = w.read(ctx, backup, identities); err != nil {
		return r, explain(err, root)
	}
	if r.Paused, err = w.storage(ctx, r.Manifest); err != nil {
		return r, explain(err, root)
	}
	return r, explain(w.finish(r.Manifest), root)
}

// check fails if there is something at Root.
func (t Target) check() error {
	entries, err := os.ReadDir(t.Root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--data-dir %s: %w", t.Root, err)
	}
	if found, err := datadir.Find(t.Root); err == nil && found.Process != 0 {
		return fmt.Errorf("data directory %s is in use by capi serve (process %d): stop it and move the directory away, "+
			"or restore to another one with --data-dir", t.Root, found.Process)
	}
	return fmt.Errorf("%s is not empty: move it away, or restore to another directory with --data-dir; nothing is ever overwritten", t.Root)
}

// explain adds what to do to an error.
func explain(err error, root string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: free some space on the disk of %s, or restore to another one with --data-dir; nothing was changed", err, root)
	case errors.Is(err, archive.ErrWrongKey):
		return fmt.Errorf("%w: use the identity file of one of the recipients of the backup", err)
	case errors.Is(err, archive.ErrTruncated), errors.Is(err, archive.ErrDamaged):
		return fmt.Errorf("%w: copy the file again, or use another backup; nothing was changed", err)
	}
	return err
}

// work is a folder beside the data directory, for one process at a time. What a killed one has left is removed by the next one.
type work struct {
	path string
	lock *fileutil.LockedFile
}

// openWork creates the folder.
func openWork(root string) (*work, error) {
	path := filepath.Join(filepath.Dir(root), "."+filepath.Base(root)+".restore")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("create a folder beside the data directory, choose another one with --data-dir: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("another capi restore to %s is running", root)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	w := &work{path: path, lock: lock}
	if err := os.RemoveAll(filepath.Join(path, "data")); err != nil {
		return nil, errors.Join(fmt.Errorf("remove what a killed capi restore has left: %w", err), lock.Close())
	}
	return w, nil
}

func (w *work) close() error {
	return errors.Join(os.RemoveAll(w.path), w.lock.Close())
}

// restore is a restore in progress.
type restore struct {
	Target
	work *work
	data string // the future data directory
	keys []byte
}

// snapshotFile is where the snapshot is until etcd's data is made of it.
func (r *restore) snapshotFile() string { return filepath.Join(r.work.path, "data", etcdEntry) }

// read writes the files of the archive. When it returns, the archive has been read to its end, so that all of it is authentic.
func (r *restore) read(ctx context.Context, backup io.Reader, identities []age.Identity) (m Manifest, err error) {
	in, err := archive.NewReader(&interruptible{ctx: ctx, Reader: backup}, identities...)
	if err != nil {
		return m, err
	}
	complete := false
	for first := true; ; first = false {
		name, size, err := in.Next()
		if errors.Is(err, io.EOF) {
			if !complete {
				return m, fmt.Errorf("%w: it has no %s", archive.ErrDamaged, etcdEntry)
			}
			return m, nil
		}
		if err != nil {
			return m, err
		}
		switch {
		case first:
			if name != manifestEntry {
				return m, ErrOther
			}
			raw, err := in.ReadSmall()
			if err != nil {
				return m, err
			}
			if m, err = parse(raw, r.Kubernetes); err != nil {
				return m, err
			}
		case name == etcdEntry:
			complete = true
			err = r.readStorage(in, size)
		default:
			err = r.readFile(in, name, size)
		}
		if err != nil {
			return m, err
		}
	}
}

// readStorage writes the snapshot, if there is space for it and for the database that is made of it.
func (r *restore) readStorage(in io.Reader, size int64) error {
	if err := r.space(2 * size); err != nil {
		return err
	}
	return writeStream(r.snapshotFile(), &progress{Reader: in, total: size, report: r.Progress})
}

// space checks that as many bytes can be written, and some more.
func (r *restore) space(size int64) error {
	free := r.Free
	if free == nil {
		free = freeSpace
	}
	available, err := free(r.work.path)
	if err != nil {
		return fmt.Errorf("find out how much space is free: %w", err)
	}
	if need := uint64(size) + spare; available < need {
		return fmt.Errorf("the restore needs %d MiB, and %d MiB are free: %w", need>>20, available>>20, syscall.ENOSPC)
	}
	return nil
}

// readFile writes one of the other files.
func (r *restore) readFile(in *archive.Reader, name string, size int64) error {
	switch folder, file, _ := strings.Cut(name, "/"); {
	case name == componentsEntry:
		if err := r.space(size); err != nil {
			return err
		}
		return extract(in, size, filepath.Join(r.data, "components"))
	case name == keysEntry:
		raw, err := in.ReadSmall()
		r.keys = raw
		return err
	case name == portEntry:
	case folder == pkiFolder && file != "" && !strings.Contains(file, "/"):
	default:
		return fmt.Errorf("%w: it has an unknown entry %s", archive.ErrDamaged, name)
	}
	path := filepath.Join(r.data, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	content, err := in.ReadSmall()
	if err != nil {
		return err
	}
	return datadir.WriteFile(path, content, 0o600)
}

// storage makes etcd's data of the snapshot, checks that Secrets can be decrypted, and marks Clusters.
func (r *restore) storage(ctx context.Context, m Manifest) (_ []string, err error) {
	data := filepath.Join(r.data, "etcd")
	if err := controlplane.RestoreStorage(ctx, r.snapshotFile(), data); err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(data, private), os.Remove(r.snapshotFile())); err != nil {
		return nil, err
	}
	sockets, err := os.MkdirTemp("", "capi-restore-")
	if err != nil {
		return nil, fmt.Errorf("create a folder for a socket: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(sockets)) }()
	etcd, err := controlplane.OpenStorage(ctx, data, filepath.Join(sockets, "etcd.sock"), io.Discard)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	stored, err := encryption.Inspect(ctx, etcd)
	if err != nil {
		return nil, err
	}
	names, err := encryption.Names(r.keys)
	if err != nil {
		return nil, fmt.Errorf("%s of the backup: %w", keysEntry, err)
	}
	if slices.ContainsFunc(stored.Keys, func(name string) bool { return !slices.Contains(names, name) }) {
		return nil, fmt.Errorf("%w: it does not have all keys that its Secrets are encrypted with", archive.ErrDamaged)
	}
	return mark(ctx, etcd, m.Created, r.Now)
}

// finish writes the keys, and moves the data directory to its place.
func (r *restore) finish(m Manifest) error {
	if err := datadir.WriteFile(filepath.Join(r.data, "kubernetes-version"), []byte(m.Kubernetes+"\n"), 0o600); err != nil {
		return err
	}
	keys := r.Keys
	if keys == "" {
		keys = filepath.Join(r.data, keysEntry)
	}
	if err := writeKeys(keys, r.keys); err != nil {
		return err
	}
	if err := syncFolders(r.data); err != nil {
		return err
	}
	// It replaces an empty directory, and fails if there is anything else.
	if err := os.Rename(r.data, r.Root); err != nil {
		return fmt.Errorf("move the data directory to its place: %w", err)
	}
	return syncFolder(filepath.Dir(r.Root))
}

// writeKeys writes the keys, unless the file has the same already. Other keys are never replaced.
func writeKeys(path string, keys []byte) error {
	switch existing, err := os.ReadFile(path); {
	case len(keys) == 0 || err == nil && string(existing) == string(keys):
		return nil
	case err == nil:
		return fmt.Errorf("%s exists, and has other keys: move it away, or set another path with --encryption-keys", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--encryption-keys: %w", err)
	}
	return datadir.WriteFile(path, keys, 0o600)
}

// interruptible ends reading when the context ends.
type interruptible struct {
	ctx context.Context //nolint:containedctx // It is that of the call that reads.
	io.Reader
}

// Read implements io.Reader.
func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.Reader.Read(p)
}

func freeSpace(folder string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0, err
	}
	return stat.Bavail * uint64(stat.Bsize), nil
}

// syncFolders makes the names of files durable.
func syncFolders(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return syncFolder(path)
	})
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
