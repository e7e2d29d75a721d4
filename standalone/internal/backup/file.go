package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"
)

// partialSuffix is that of a backup that is not complete.
const partialSuffix = ".partial"

// SaveFile saves to a file that must not exist, and returns its size in bytes. It has another name until it is complete.
func (s Source) SaveFile(ctx context.Context, path string, recipients []age.Recipient) (m Manifest, size int64, err error) {
	if _, err := os.Lstat(path); err == nil { // Links are not supported by every file system, so that another process may still create it.
		return m, 0, fmt.Errorf("%s exists, and is not replaced: choose another name for the backup", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return m, 0, fmt.Errorf("write the backup: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*"+partialSuffix) // mode 0600
	if err != nil {
		return m, 0, fmt.Errorf("write the backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	m, err = s.Save(ctx, file, recipients)
	if err == nil {
		err = file.Sync()
	}
	info, statErr := file.Stat()
	if err = errors.Join(err, statErr, file.Close()); err != nil {
		return m, 0, err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return m, 0, fmt.Errorf("write the backup: %w", err)
	}
	return m, info.Size(), syncFolder(filepath.Dir(path))
}
