package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

// incomplete is the folder of files that are being written. It is on the same file system, so that renaming a file is atomic.
const incomplete = ".incomplete"

// Directory keeps objects as files, which only their owner can read. No key and no symbolic link leads out of the directory.
type Directory struct {
	root *os.Root
}

// NewDirectory returns a Store in a directory that exists. Close it when it is no longer used.
func NewDirectory(dir string) (*Directory, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening directory %s: %w", dir, ErrNoBucket)
	}
	if err != nil {
		return nil, fmt.Errorf("opening directory %s: %w", dir, typeOf(err))
	}
	return &Directory{root: root}, nil
}

// Close closes the directory. Objects that are being read stay readable.
func (d *Directory) Close() error { return d.root.Close() }

// Put implements Store. The file is on disk when it returns.
func (d *Directory) Put(ctx context.Context, key string, content io.Reader) error {
	if err := checkKey(key); err != nil {
		return err
	}
	in := &whileLive{ctx: ctx, reader: content}
	if err := d.put(key, in); err != nil {
		return fmt.Errorf("storing %s: %w", key, in.or(typeOf(err)))
	}
	return nil
}

func (d *Directory) put(key string, content io.Reader) error {
	if err := d.root.MkdirAll(incomplete, 0o700); err != nil {
		if absent(err) {
			return ErrNoBucket
		}
		return err
	}
	temporary := path.Join(incomplete, rand.Text())
	file, err := d.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(struct{ io.Writer }{file}, content)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = d.publish(temporary, key)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(temporary))
	}
	return nil
}

// publish moves a complete file to its key, and waits until the folders are on disk.
func (d *Directory) publish(temporary, key string) error {
	folder := path.Dir(key)
	err := d.root.MkdirAll(folder, 0o700)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		return errors.New("a part of its key is the key of another object")
	}
	if err != nil {
		return err
	}
	if err := d.root.Rename(temporary, key); err != nil {
		return err
	}
	// All folders up to the root: those that are new are entries of the one above.
	for ; ; folder = path.Dir(folder) {
		if err := d.sync(folder); err != nil {
			return err
		}
		if folder == "." {
			return nil
		}
	}
}

func (d *Directory) sync(folder string) error {
	f, err := d.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Get implements Store.
func (d *Directory) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return d.get(ctx, key)
}

func (d *Directory) get(ctx context.Context, key string) (io.ReadCloser, error) {
	info, err := d.root.Lstat(key)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	var file *os.File
	if err == nil {
		// Without O_NONBLOCK, opening a pipe that has taken the file's place would wait for a writer.
		file, err = d.root.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, typeOf(err))
	}
	return &struct {
		io.Reader
		io.Closer
	}{&whileLive{ctx: ctx, reader: file}, file}, nil
}

// List implements Store.
func (d *Directory) List(ctx context.Context, prefix string, each func(Entry) error) error {
	err := fs.WalkDir(d.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && name != ".":
			return nil // deleted in the meantime
		case err != nil:
			return err
		case entry.IsDir():
			return descend(name, prefix)
		case !entry.Type().IsRegular() || !strings.HasPrefix(name, prefix) || !ValidKey(name):
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(Entry{Key: name, Size: info.Size(), Modified: info.ModTime()}); err != nil {
			return &eachError{err}
		}
		return nil
	})
	return listed(prefix, err, func(err error) error {
		if absent(err) {
			return ErrNoBucket
		}
		return typeOf(err)
	})
}

// descend returns fs.SkipDir for folders that have no keys with a prefix.
func descend(folder, prefix string) error {
	if folder == "." || (ValidKey(folder) && (strings.HasPrefix(folder+"/", prefix) || strings.HasPrefix(prefix, folder+"/"))) {
		return nil
	}
	return fs.SkipDir
}

// Delete implements Store. Empty folders stay: an upload may be about to use them.
func (d *Directory) Delete(_ context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	info, err := d.root.Lstat(key)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		err = d.root.Remove(key)
	}
	if err != nil && !absent(err) {
		return fmt.Errorf("deleting %s: %w", key, typeOf(err))
	}
	return nil
}

// URL implements Store, and returns ErrNoURL.
func (d *Directory) URL(_ context.Context, key string, lifetime time.Duration) (string, error) {
	return "", errors.Join(checkKey(key), checkLifetime(lifetime), ErrNoURL)
}

// Check implements Store.
func (d *Directory) Check(ctx context.Context) error {
	if err := d.List(ctx, "", func(Entry) error { return errStop }); err != nil && !errors.Is(err, errStop) {
		return err
	}
	key := newCheckKey()
	if err := d.put(key, strings.NewReader(key)); err != nil {
		return fmt.Errorf("writing an object to check the store: %w", typeOf(err))
	}
	if err := readBack(ctx, key, d.get); err != nil {
		return errors.Join(err, d.root.Remove(key))
	}
	if err := d.root.Remove(key); err != nil {
		return fmt.Errorf("deleting an object to check the store: %w", typeOf(err))
	}
	return nil
}

// Clean implements Store.
func (d *Directory) Clean(ctx context.Context, before time.Time) error {
	entries, err := fs.ReadDir(d.root.FS(), incomplete)
	if err != nil && !absent(err) {
		return fmt.Errorf("reading folder %s: %w", incomplete, typeOf(err))
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || !info.ModTime().Before(before) {
			continue // completed in the meantime, or recent
		}
		if err := d.root.Remove(path.Join(incomplete, entry.Name())); err != nil && !absent(err) {
			return fmt.Errorf("deleting an incomplete file: %w", typeOf(err))
		}
	}
	return nil
}

// absent reports whether there is no file with a name: also if a part of the path is a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// typeOf returns an error of a file system with its type.
func typeOf(err error) error {
	switch {
	case absent(err):
		return ErrNotFound
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", ErrCredentials, err)
	default:
		return err
	}
}
