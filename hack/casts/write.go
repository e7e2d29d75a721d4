package casts

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"sigs.k8s.io/cluster-api/hack/pictures"
)

// Write records all casts on a new management cluster, which runs the programs in bin/ of a repository, and writes them into its book.
func Write(ctx context.Context, root string) (err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	style, err := pictures.Embedded(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "casts-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l, err := start(ctx, root, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	n := newNames()
	for _, c := range all() {
		frames, err := record(ctx, l, c, n)
		if err != nil {
			return err
		}
		file := filepath.Join(root, pictures.Folder, c.name+".svg")
		if err := os.WriteFile(file, []byte(svg(c, frames, style)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
