package filetree

import (
	"archive/tar"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Write writes the tree as a tar archive with one time for all files.
func (t *Tree) Write(w io.Writer, modified time.Time) error {
	writer := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		if err := write(writer, name, t.entries[name], modified); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return writer.Close()
}

func write(w *tar.Writer, name string, e entry, modified time.Time) error {
	header := tar.Header{
		Name: name, Typeflag: e.header.Typeflag, Mode: e.header.Mode, Uid: e.header.Uid, Gid: e.header.Gid,
		Linkname: e.header.Linkname, Size: e.header.Size, ModTime: modified,
		PAXRecords: extended(e.header.PAXRecords),
	}
	if header.Typeflag == tar.TypeDir {
		header.Name += "/"
	}
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(w, io.NewSectionReader(e.content, 0, header.Size))
	return err
}

// extended returns the extended attributes, such as capabilities of programs, without times and other records.
func extended(records map[string]string) map[string]string {
	out := maps.Clone(records)
	maps.DeleteFunc(out, func(name, _ string) bool { return !strings.HasPrefix(name, "SCHILY.xattr.") })
	return out
}
