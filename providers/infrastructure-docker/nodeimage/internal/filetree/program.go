package filetree

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// CopyPrograms copies executables or libraries from another tree like Copy, with all shared libraries that they need.
func (t *Tree) CopyPrograms(from *Tree, names ...string) error {
	copied := map[string]bool{}
	for len(names) > 0 {
		name := clean(names[0])
		names = names[1:]
		if copied[name] {
			continue
		}
		copied[name] = true
		if err := t.Copy(from, name); err != nil {
			return err
		}
		needed, err := from.needed(name)
		if err != nil {
			return err
		}
		names = append(names, needed...)
	}
	return nil
}

// needed returns the dynamic linker and the libraries that an ELF file names, by path. Other files need nothing.
func (t *Tree) needed(name string) ([]string, error) {
	content, err := t.open(name)
	if err != nil {
		return nil, err
	}
	magic := make([]byte, len(elf.ELFMAG))
	if _, err := content.ReadAt(magic, 0); err != nil || string(magic) != elf.ELFMAG {
		return nil, nil // a script
	}
	file, err := elf.NewFile(content)
	if err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", name, err)
	}
	var out []string
	for _, program := range file.Progs {
		if program.Type != elf.PT_INTERP {
			continue
		}
		linker := make([]byte, program.Filesz)
		if _, err := program.ReadAt(linker, 0); err != nil {
			return nil, fmt.Errorf("cannot read the dynamic linker of %s: %w", name, err)
		}
		out = append(out, strings.TrimRight(string(linker), "\x00"))
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("cannot read the libraries of %s: %w", name, err)
	}
	for _, library := range libraries {
		found, err := t.library(library)
		if err != nil {
			return nil, fmt.Errorf("%s needs %s: %w", name, library, err)
		}
		out = append(out, found)
	}
	return out, nil
}

// library returns the path of a library in the default folders of Debian's dynamic linker.
func (t *Tree) library(name string) (string, error) {
	for _, pattern := range []string{"lib/*-linux-gnu*", "usr/lib/*-linux-gnu*", "lib", "usr/lib", "lib64", "usr/lib64"} {
		for _, dir := range t.Glob(pattern) {
			if _, err := t.walk(path.Join(dir, name)); err == nil {
				return path.Join(dir, name), nil
			}
		}
	}
	return "", fs.ErrNotExist
}
