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
	// maxSocketPath is the longest path of a folder for unix sockets that every platform accepts (macOS allows 104 bytes
	// with the closing zero), less the longest name used in it.
	maxSocketPath = 104 - 1 - len("/4194304/egress.sock")

	// runName is the entry of the data directory that holds the sockets, or is a link to the folder that does.
	runName = "run"
	// temporaryPrefix begins the names of folders for sockets outside of the data directory.
	temporaryPrefix = "capi-"
)

// Socket is the path of the unix socket with that name, in a folder that only this user can enter.
func (d *Dir) Socket(name string) string { return filepath.Join(d.run, name+".sock") }

// makeRun removes what a killed process left of its sockets, and makes this process's folder for them.
func makeRun(root string) (string, error) {
	run := filepath.Join(root, runName)
	if target, err := os.Readlink(run); err == nil {
		removeTemporary(target)
	}
	if err := os.RemoveAll(run); err != nil { // does not follow links
		return "", fmt.Errorf("clearing %s: %w", run, err)
	}
	if len(run) <= maxSocketPath {
		// A folder of this process's own: one that is still stopping, whose data directory was removed and made
		// again meanwhile, must not take our sockets with it.
		own := filepath.Join(run, strconv.Itoa(os.Getpid()))
		return own, os.MkdirAll(own, privateMode)
	}
	// A unix socket's path has a small limit. Deep data directories keep their sockets in a private temporary folder;
	// the link tells the next process what to remove after a crash.
	temporary, err := os.MkdirTemp("", temporaryPrefix)
	if err != nil {
		return "", fmt.Errorf("making a folder for sockets: %w", err)
	}
	return temporary, os.Symlink(temporary, run)
}

// removeTemporary removes a temporary folder that makeRun made, and its sockets. The link that leads to it is not
// trusted: a folder that makeRun would not have made stays, and so does anything in it but sockets.
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
	_ = os.Remove(path) // fails while something else is in it
}
