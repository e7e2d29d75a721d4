// Package cache keeps files that take long to build, by the inputs that they are built from.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Cache is a folder with built files. One process at a time uses it.
type Cache struct {
	dir  string
	lock *os.File
}

// Open opens the cache in a folder, and creates it if needed. If another process uses it, Open calls busy, and waits.
func Open(dir string, busy func()) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the cache: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the cache: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		busy()
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			return nil, fmt.Errorf("cannot lock the cache %s: %w", dir, err)
		}
	}
	// Left by a process that was killed.
	if err := os.RemoveAll(filepath.Join(dir, "unfinished")); err != nil {
		return nil, fmt.Errorf("cannot clean the cache: %w", err)
	}
	return &Cache{dir: dir, lock: lock}, nil
}

// Close lets other processes use the cache.
func (c *Cache) Close() error { return c.lock.Close() }

// Dir creates and returns an empty folder for the files of a build. It lasts until Discard, or until the cache is opened again.
func (c *Cache) Dir(name string) (string, error) {
	dir := filepath.Join(c.dir, "unfinished", name)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// Discard removes the folder that Dir returned for a name.
func (c *Cache) Discard(name string) error {
	return os.RemoveAll(filepath.Join(c.dir, "unfinished", name))
}

// File returns the path of the file with a name that is built from inputs. If it is not in the cache, build writes it, and it
// replaces files of the same name with other inputs. Inputs are compared as JSON.
func (c *Cache) File(ctx context.Context, name string, inputs any, build func(ctx context.Context, path string) error) (string, error) {
	key, err := Key(inputs)
	if err != nil {
		return "", fmt.Errorf("inputs of %s: %w", name, err)
	}
	path := filepath.Join(c.dir, name, key)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	dir, err := c.Dir(name)
	if err != nil {
		return "", err
	}
	unfinished := filepath.Join(dir, "result")
	if err := build(ctx, unfinished); err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return "", err
	}
	return path, c.Discard(name)
}

// Key returns a short name for inputs.
func Key(inputs any) (string, error) {
	raw, err := json.Marshal(inputs)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12]), nil
}
