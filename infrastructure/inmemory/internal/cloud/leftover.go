package cloud

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Leftover is a journal that no open group has. Whether its owner lives, this package does not know.
type Leftover struct {
	// UID is that of the group's owner, as given to EnsureGroup.
	UID types.UID

	path string
}

// Leftovers returns the journals that earlier processes left. One that cannot be read is not among them: whose it is
// cannot be told.
func (c *Cloud) Leftovers() ([]Leftover, error) {
	if c.directory == "" {
		return nil, nil
	}
	paths, err := filepath.Glob(filepath.Join(c.directory, "*"+journalSuffix))
	if err != nil {
		return nil, fmt.Errorf("look for journals: %w", err)
	}
	var all []Leftover
	for _, path := range paths {
		if uid, ok := journalOwner(path); ok && !c.open(path) {
			all = append(all, Leftover{UID: uid, path: path})
		}
	}
	return all, nil
}

// Discard removes a leftover, unless a group has been opened in its place.
func (c *Cloud) Discard(l Leftover) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uid, ok := journalOwner(l.path); !ok || uid != l.UID || c.has(l.path) {
		return nil
	}
	if err := ignoreMissing(os.Remove(l.path)); err != nil {
		return fmt.Errorf("remove the journal of an owner that is gone: %w", err)
	}
	return nil
}

// DiscardOf removes what an earlier process left of the group of an owner, if it has not been opened since. Journals of
// other owners stay.
func (c *Cloud) DiscardOf(key types.NamespacedName, uid types.UID) error {
	if c.directory == "" || !isName(key.Namespace) || !isName(key.Name) {
		return nil
	}
	return c.Discard(Leftover{UID: uid, path: journalPath(c.directory, key)})
}

// isName reports whether a name is one that an object can have: such a one is the name of a file, and no more than that.
func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func (c *Cloud) open(path string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.has(path)
}

// has reports whether a group writes to this path. The cloud's lock is held.
func (c *Cloud) has(path string) bool {
	for key := range c.groups {
		if journalPath(c.directory, key) == path {
			return true
		}
	}
	return false
}

// journalOwner reads whose a journal is; false when it does not say, or is of another format.
func journalOwner(path string) (types.UID, bool) {
	file, err := os.Open(path)
	if err != nil {
		return "", false
	}
	first, err := bufio.NewReader(file).ReadBytes('\n')
	var found header
	err = errors.Join(err, json.Unmarshal(first, &found), file.Close())
	return found.UID, err == nil && found.Version == journalVersion && found.UID != ""
}
