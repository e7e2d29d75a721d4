package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// othersWrite are the permissions that let somebody else write.
const othersWrite = 0o022

// protect makes sure that the directory belongs to this user alone: itself, and everything in it. What somebody else
// put there could be a CA whose key they know, or a link to a file that we would overwrite. A directory that others may
// only read is closed to them.
func protect(root string) error {
	info, err := os.Lstat(root)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", root, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("data directory %s is a symbolic link: name the directory that it leads to with --data-dir", root)
	}
	if !info.IsDir() {
		return fmt.Errorf("data directory %s is not a directory: choose another one with --data-dir", root)
	}
	if err := owned(root, info); err != nil {
		return err
	}
	if info.Mode()&othersWrite != 0 {
		return fmt.Errorf("data directory %s can be written by other users (%s), who could take over the cluster: "+
			"choose another one with --data-dir, or, if everything in it is yours, run: chmod 700 %s", root, info.Mode(), root)
	}
	if info.Mode().Perm() != privateMode {
		if err := os.Chmod(root, privateMode); err != nil {
			return fmt.Errorf("making data directory %s private: %w", root, err)
		}
	}
	return filepath.WalkDir(root, check(root))
}

// check makes sure of each entry of the directory. The lock is not taken yet, so a process that holds the directory, or is
// about to end, may remove entries at the same time: what is gone harms nobody.
func check(root string) fs.WalkDirFunc {
	return func(path string, entry fs.DirEntry, err error) error {
		if path != root && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("checking data directory %s: %w", root, err)
		}
		if path == root {
			return nil
		}
		return own(path, entry, path == filepath.Join(root, runName))
	}
}

// own fails for an entry that is not this user's, or is more than a file or folder of its own. The folder for sockets
// may be a link, see makeRun.
func own(path string, entry fs.DirEntry, mayLink bool) error {
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("checking %s: %w", path, err)
	}
	if info.Mode()&fs.ModeSymlink != 0 && !mayLink {
		return fmt.Errorf("%s is a symbolic link, and capi follows none inside its data directory: remove it", path)
	}
	if info.Mode().IsRegular() && links(info) > 1 {
		return fmt.Errorf("%s has a second name elsewhere (a hard link), where writing to it would show: replace it by a copy", path)
	}
	return owned(path, info)
}

// owned fails when the owner of a file is another user. The superuser is no exception: as root, capi would act on what
// an ordinary user prepared.
func owned(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (UID %d, this process runs as %d): run capi as that user, or choose another directory with --data-dir",
			path, stat.Uid, os.Geteuid())
	}
	return nil
}

func links(info fs.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(stat.Nlink) //nolint:unconvert // its type differs by platform
}
