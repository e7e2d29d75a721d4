package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/cluster-api/packages"
)

// local reads a folder with one subfolder per version.
type local struct {
	folder string
}

// openLocal reads a path of the form {base}/{manifest label}/{version|latest}/{file}.
func openLocal(p packages.Provider, path string) (Repository, location, error) {
	if !filepath.IsAbs(path) {
		return nil, location{}, fmt.Errorf("the path of a local repository must be absolute")
	}
	folder, file := filepath.Split(filepath.Clean(path))
	version := filepath.Base(folder)
	base := filepath.Dir(filepath.Clean(folder))
	if label := filepath.Base(base); label != p.ManifestLabel() {
		return nil, location{}, fmt.Errorf("it must have the form {folder}/%s/{version|latest}/{file}, but has %q where %q should be",
			p.ManifestLabel(), label, p.ManifestLabel())
	}
	if version != Latest {
		if _, err := packages.ParseVersion(version); err != nil {
			return nil, location{}, err
		}
	}
	return local{folder: base}, location{version: version, file: file, folder: folder}, nil
}

// Versions returns the subfolders that are semantic versions.
func (l local) Versions(context.Context) ([]string, error) {
	entries, err := os.ReadDir(l.folder)
	if err != nil {
		return nil, notFound(err)
	}
	var versions []string
	for _, entry := range entries {
		// Symbolic links to folders count.
		info, err := os.Stat(filepath.Join(l.folder, entry.Name()))
		if err != nil || !info.IsDir() {
			continue
		}
		if _, err := packages.ParseVersion(entry.Name()); err == nil {
			versions = append(versions, entry.Name())
		}
	}
	return versions, nil
}

// File reads a file of a version.
func (l local) File(_ context.Context, version, name string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(l.folder, version, filepath.FromSlash(name)))
	return raw, notFound(err)
}

// Files lists a version's folder.
func (l local) Files(_ context.Context, version string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(l.folder, version))
	if err != nil {
		return nil, notFound(err)
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

func notFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}
