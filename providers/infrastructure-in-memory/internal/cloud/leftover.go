package cloud

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Leftover is a journal without an open group. Its owner may still exist.
type Leftover struct {
	// UID is the UID of the group's owner, as passed to EnsureGroup.
	UID types.UID

	path string
}

// Leftovers returns the journals of earlier processes. Unreadable ones are skipped, because their owner is unknown.
func (c *Cloud) Leftovers() ([]Leftover, error) {
	if c.options.Directory == "" {
		return nil, nil
	}
	paths, err := filepath.Glob(filepath.Join(c.options.Directory, "*"+store.JournalSuffix))
	if err != nil {
		return nil, fmt.Errorf("list journals: %w", err)
	}
	var all []Leftover
	for _, path := range paths {
		if uid, ok := store.JournalOwner(path); ok && !c.open(path) {
			all = append(all, Leftover{UID: uid, path: path})
		}
	}
	return all, nil
}

// Discard removes a leftover, unless its group has been opened.
func (c *Cloud) Discard(l Leftover) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uid, ok := store.JournalOwner(l.path); !ok || uid != l.UID || c.has(l.path) {
		return nil
	}
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the journal of an owner that is gone: %w", err)
	}
	return nil
}

// DiscardOf removes the leftover journal of an owner's group, unless the group has been opened. Journals of other owners
// are kept.
func (c *Cloud) DiscardOf(key types.NamespacedName, uid types.UID) error {
	if c.options.Directory == "" || !isName(key.Namespace) || !isName(key.Name) {
		return nil
	}
	return c.Discard(Leftover{UID: uid, path: store.JournalPath(c.options.Directory, key)})
}

// isName reports whether a name is a valid object name, and therefore safe as a file name.
func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func (c *Cloud) open(path string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.has(path)
}

// has reports whether an open group writes to this path. The cloud's lock is held.
func (c *Cloud) has(path string) bool {
	for key := range c.groups {
		if store.JournalPath(c.options.Directory, key) == path {
			return true
		}
	}
	return false
}
