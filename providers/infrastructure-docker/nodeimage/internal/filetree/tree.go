// Package filetree composes the file systems of images, and writes them as archives that only depend on their content: sorted,
// with numeric owners, and with one fixed time.
//
// It knows nothing about images, and does not extract files, so it needs no permissions.
package filetree

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// maxLinks is the number of symbolic links after which a path counts as a loop, as in Linux.
const maxLinks = 40

// Tree is a file system by path: relative to its root, without a leading slash. Its files are read when it is written.
type Tree struct {
	entries map[string]entry
}

// entry is a file, directory or link.
type entry struct {
	header  tar.Header
	content io.ReaderAt
}

// New returns an empty tree.
func New() *Tree { return &Tree{entries: map[string]entry{}} }

// ReadTar returns the files of an archive that keep accepts. The archive must stay open, and be unchanged, while the tree is
// in use.
func ReadTar(archive *os.File, keep func(name string) bool) (*Tree, error) {
	t := New()
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", archive.Name(), err)
		}
		name := clean(header.Name)
		if name == "." || !keep(name) {
			continue
		}
		// The reader does not read ahead.
		offset, err := archive.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", archive.Name(), err)
		}
		e := entry{header: *header, content: io.NewSectionReader(archive, offset, header.Size)}
		if header.Typeflag == tar.TypeLink {
			// A copy: the files that Debian links are small.
			target, ok := t.entries[clean(header.Linkname)]
			if !ok {
				return nil, fmt.Errorf("%s: the target of the hard link %s is not in the archive", archive.Name(), name)
			}
			e = target
		}
		t.entries[name] = e
	}
}

// clean returns a path as trees have them; the root is ".".
func clean(name string) string {
	if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name != "" {
		return name
	}
	return "."
}

// AddFile adds a regular file of root, replacing an existing one.
func (t *Tree) AddFile(name string, mode fs.FileMode, content []byte) {
	t.AddReader(name, mode, bytes.NewReader(content), int64(len(content)))
}

// AddReader adds a regular file of root whose content is read when the tree is written.
func (t *Tree) AddReader(name string, mode fs.FileMode, content io.ReaderAt, size int64) {
	t.add(name, entry{header: tar.Header{Typeflag: tar.TypeReg, Mode: int64(mode.Perm()), Size: size}, content: content})
}

// AddDir adds a directory of root. Parents that are not added are created with mode 0755.
func (t *Tree) AddDir(name string, mode fs.FileMode) {
	permissions := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		permissions |= 0o1000
	}
	t.add(name, entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: permissions}})
}

// AddLink adds a symbolic link.
func (t *Tree) AddLink(name, target string) {
	t.add(name, entry{header: tar.Header{Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: target}})
}

// add adds an entry, and the directories that contain it.
func (t *Tree) add(name string, e entry) {
	name = clean(name)
	t.entries[name] = e
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if _, ok := t.entries[parent]; !ok {
			t.entries[parent] = entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}
		}
	}
}

// AddFiles adds all regular files of a file system, below a folder, with the modes that mode returns for their paths.
func (t *Tree) AddFiles(dir string, files fs.FS, mode func(name string) fs.FileMode) error {
	return fs.WalkDir(files, ".", func(name string, found fs.DirEntry, err error) error {
		if err != nil || !found.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		t.AddFile(path.Join(dir, name), mode(name), content)
		return nil
	})
}

// Remove removes files, if they exist, and everything below them.
func (t *Tree) Remove(names ...string) {
	for _, name := range names {
		name = clean(name)
		maps.DeleteFunc(t.entries, func(existing string, _ entry) bool {
			return existing == name || strings.HasPrefix(existing, name+"/")
		})
	}
}

// Copy copies files from another tree, with the directories and links on the way to them, and the targets of links.
func (t *Tree) Copy(from *Tree, names ...string) error {
	for _, name := range names {
		visited, err := from.walk(name)
		if err != nil {
			return err
		}
		for _, v := range visited {
			t.entries[v] = from.entries[v]
		}
	}
	return nil
}

// Glob returns the files that match a pattern of path.Match, sorted.
func (t *Tree) Glob(pattern string) []string {
	var out []string
	for name := range t.entries {
		if matched, err := path.Match(clean(pattern), name); err == nil && matched {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Read returns the content of a regular file, following links.
func (t *Tree) Read(name string) ([]byte, error) {
	content, err := t.open(name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(content)
}

func (t *Tree) open(name string) (*io.SectionReader, error) {
	visited, err := t.walk(name)
	if err != nil {
		return nil, err
	}
	e := t.entries[visited[len(visited)-1]]
	if e.header.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("%s: %w: not a regular file", name, fs.ErrInvalid)
	}
	return io.NewSectionReader(e.content, 0, e.header.Size), nil
}

// walk returns what is visited on the way to a file: directories, links, and last the file itself.
func (t *Tree) walk(name string) ([]string, error) {
	var visited []string
	current, links := "", 0
	for pending := strings.Split(clean(name), "/"); len(pending) > 0; {
		part := pending[0]
		pending = pending[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			current = strings.TrimPrefix(path.Dir("/"+current), "/")
			continue
		}
		next := path.Join(current, part)
		e, ok := t.entries[next]
		if !ok {
			return nil, fmt.Errorf("%s: %w", next, fs.ErrNotExist)
		}
		visited = append(visited, next)
		if e.header.Typeflag != tar.TypeSymlink {
			current = next
			continue
		}
		if links++; links > maxLinks {
			return nil, fmt.Errorf("%s: too many symbolic links", name)
		}
		if path.IsAbs(e.header.Linkname) {
			current = ""
		}
		pending = append(strings.Split(e.header.Linkname, "/"), pending...)
	}
	if len(visited) == 0 {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return visited, nil
}
