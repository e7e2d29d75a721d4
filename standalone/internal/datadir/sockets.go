package datadir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// maxSocketPath is the maximum length of the path of the folder for unix sockets on every platform (macOS allows 104
	// bytes including the terminating zero), minus the longest name in it.
	maxSocketPath = 104 - 1 - len("/4194304/egress.sock")

	// runName is the folder with the sockets in the data directory, or a link to that folder.
	runName = "run"
	// temporaryPrefix is the name prefix of folders for sockets outside the data directory.
	temporaryPrefix = "capi-"
)

// Socket returns the path of the unix socket with that name, in a folder that only this user can access.
func (d *Dir) Socket(name string) string { return filepath.Join(d.run, name+".sock") }

// makeRun removes stale sockets of a killed process, and creates this process's folder for sockets.
func makeRun(root string) (string, error) {
	run := filepath.Join(root, runName)
	if target, err := os.Readlink(run); err == nil {
		removeTemporary(target)
	}
	if err := os.RemoveAll(run); err != nil { // does not follow links
		return "", fmt.Errorf("clear %s: %w", run, err)
	}
	if len(run) <= maxSocketPath {
		// Every process has its own folder: if the data directory was removed and recreated, a process that is still
		// stopping must not remove our sockets.
		own := filepath.Join(run, strconv.Itoa(os.Getpid()))
		return own, os.MkdirAll(own, privateMode)
	}
	// Paths of unix sockets are limited. For long paths, sockets are in a private temporary folder; the link tells the
	// next process what to remove after a crash.
	temporary, err := os.MkdirTemp("", temporaryPrefix)
	if err != nil {
		return "", fmt.Errorf("create a folder for sockets: %w", err)
	}
	return temporary, os.Symlink(temporary, run)
}

// removeTemporary removes a temporary folder created by makeRun, with its sockets. The link to it is not trusted: it only
// removes folders that makeRun could have created, and only sockets in them.
func removeTemporary(path string) {
	if filepath.Dir(path) != filepath.Clean(os.TempDir()) || !strings.HasPrefix(filepath.Base(path), temporaryPrefix) {
		return
	}
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm() != privateMode || owned(path, info) != nil {
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSocket != 0 {
			_ = os.Remove(filepath.Join(path, entry.Name()))
		}
	}
	_ = os.Remove(path) // fails if it contains anything else
}
