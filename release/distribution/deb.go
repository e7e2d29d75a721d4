package distribution

import (
	"archive/tar"
	"bytes"
	"crypto/md5" //nolint:gosec // the format of Debian's packages wants it, to find damaged files; signatures are over the whole package
	"fmt"
	"strings"
	"time"
)

// DebFile is the name of the file of a Debian package.
func (p Package) DebFile() string { return fmt.Sprintf("%s_%s_%s.deb", p.Name, p.version(), p.Arch) }

// Deb returns the package in the format of Debian, version 2.0 (man 5 deb). Debian names our architectures like Go.
func (p Package) Deb() ([]byte, error) {
	files := sorted(p.Files)
	data, err := compressed(func(w *tar.Writer) error {
		for _, dir := range folders(files) {
			if err := writeFolder(w, "./"+dir+"/", p.Time); err != nil {
				return err
			}
		}
		return write(w, "./", files, p.Time)
	})
	if err != nil {
		return nil, fmt.Errorf("files of %s: %w", p.Name, err)
	}
	control, err := compressed(func(w *tar.Writer) error { return write(w, "./", p.control(files), p.Time) })
	if err != nil {
		return nil, fmt.Errorf("control files of %s: %w", p.Name, err)
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, member := range []struct {
		name    string
		content []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", control}, {"data.tar.gz", data}} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, p.Time.Unix(), 0, 0, "100644", len(member.content))
		out.Write(member.content)
		if len(member.content)%2 != 0 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes(), nil
}

func writeFolder(w *tar.Writer, name string, modified time.Time) error {
	return w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: name, Mode: 0o755, ModTime: modified.UTC().Truncate(time.Second),
		Uname: "root", Gname: "root", Format: tar.FormatGNU,
	})
}

// control returns the control files, sorted.
func (p Package) control(files []File) []File {
	size, sums := 0, strings.Builder{}
	for _, f := range files {
		size += (len(f.Content) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.Content), f.Path) //nolint:gosec // see the import
	}
	var text strings.Builder
	for _, field := range [][2]string{
		{"Package", p.Name}, {"Version", p.version()}, {"Architecture", p.Arch}, {"Maintainer", p.Maintainer},
		{"Installed-Size", fmt.Sprint(size)}, {"Section", "admin"}, {"Priority", "optional"}, {"Homepage", p.Homepage},
		{"Description", p.Summary},
	} {
		fmt.Fprintf(&text, "%s: %s\n", field[0], field[1])
	}
	for line := range strings.SplitSeq(strings.TrimSpace(p.Description), "\n") {
		fmt.Fprintf(&text, " %s\n", line)
	}
	out := []File{
		{Path: "control", Mode: 0o644, Content: []byte(text.String())},
		{Path: "md5sums", Mode: 0o644, Content: []byte(sums.String())},
	}
	for _, script := range [][3]string{{"postinst", "configure", p.AfterInstall}, {"prerm", "remove", p.BeforeRemove}} {
		if name, action, text := script[0], script[1], script[2]; text != "" {
			content := fmt.Sprintf("#!/bin/sh\nset -e\n[ \"$1\" = %s ] || exit 0\n%s", action, text)
			out = append(out, File{Path: name, Mode: 0o755, Content: []byte(content)})
		}
	}
	return out
}
