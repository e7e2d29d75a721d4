package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// othersWrite are the write permissions of other users.
const othersWrite = 0o022

// protect checks that the directory and everything in it is owned and writable only by this user. Other users could plant
// a CA whose key they know, or a link to a file that capi would overwrite. If others may only read the directory, their
// access is removed.
func protect(root string) error {
	info, err := os.Lstat(root)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", root, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("data directory %s is a symbolic link: set --data-dir to its target", root)
	}
	if !info.IsDir() {
		return fmt.Errorf("data directory %s is not a directory: choose another one with --data-dir", root)
	}
	if err := owned(root, info); err != nil {
		return err
	}
	if info.Mode()&othersWrite != 0 {
		return fmt.Errorf("data directory %s is writable by other users (%s), who could take over the cluster: "+
			"choose another one with --data-dir, or, if everything in it is yours, run: chmod 700 %s", root, info.Mode(), root)
	}
	if info.Mode().Perm() != privateMode {
		if err := os.Chmod(root, privateMode); err != nil {
			return fmt.Errorf("set the permissions of data directory %s: %w", root, err)
		}
	}
	return filepath.WalkDir(root, check(root))
}

// check checks each entry of the directory. The lock is not taken yet, so another process may remove entries
// concurrently: missing entries are fine.
func check(root string) fs.WalkDirFunc {
	return func(path string, entry fs.DirEntry, err error) error {
		if path != root && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("check data directory %s: %w", root, err)
		}
		if path == root {
			return nil
		}
		return own(path, entry, path == filepath.Join(root, runName))
	}
}

// own returns an error for an entry of another user, and for symbolic and hard links. The folder for sockets may be a
// symbolic link, see makeRun.
func own(path string, entry fs.DirEntry, mayLink bool) error {
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check %s: %w", path, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 && !mayLink {
		return fmt.Errorf("%s is a symbolic link, which is not allowed inside the data directory: remove it", path)
	}
	if info.Mode().IsRegular() && links(info) > 1 {
		return fmt.Errorf("%s has hard links elsewhere, which would change with it: replace it with a copy", path)
	}
	return owned(path, info)
}

// owned returns an error if a file belongs to another user, even for root: capi would act on what an ordinary user
// prepared.
func owned(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (UID %d, this process runs as %d): "+
			"run capi as that user, or choose another directory with --data-dir",
			path, stat.Uid, os.Geteuid())
	}
	return nil
}

func links(info fs.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(stat.Nlink) //nolint:unconvert // the type depends on the platform
}
