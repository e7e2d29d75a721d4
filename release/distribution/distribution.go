// Package distribution writes programs in the formats of package managers: packages of Debian and RPM, archives, and what Homebrew and Krew
// read.
//
// The same input gives the same bytes. What is in a package is up to the caller.
package distribution

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// File is a file in a package or an archive.
type File struct {
	// Path has no leading slash.
	Path string
	// Mode are the permissions.
	Mode    fs.FileMode
	Content []byte
	// License marks the text of the license.
	License bool
}

// Package is a program for Linux, with what belongs to it.
type Package struct {
	Name, Summary, Description string
	// Version of the release, with a leading v.
	Version string
	// Arch is named as Go does.
	Arch string
	// Homepage and Maintainer are for users. A maintainer is a name with an address for mail.
	Homepage, Maintainer string
	// Time is that of all files, and of the package.
	Time  time.Time
	Files []File
	// AfterInstall and BeforeRemove are shell scripts, which run after an installation or upgrade, and before a removal that is no upgrade.
	AfterInstall, BeforeRemove string
}

// version returns the version for package managers: there, a tilde sorts pre-releases before their release.
func (p Package) version() string {
	return strings.Replace(strings.TrimPrefix(p.Version, "v"), "-", "~", 1)
}

// sorted returns the files by path.
func sorted(files []File) []File {
	return slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}

// Archive returns files as a compressed tar, in the order of their paths.
func Archive(files []File, modified time.Time) ([]byte, error) {
	return compressed(func(w *tar.Writer) error { return write(w, "", sorted(files), modified) })
}

// compressed returns a tar that a function writes, compressed. The header of gzip has no time and no name.
func compressed(do func(*tar.Writer) error) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zipped)
	if err := do(archive); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// write writes files of root into a tar, below a prefix.
func write(w *tar.Writer, prefix string, files []File, modified time.Time) error {
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: prefix + f.Path, Size: int64(len(f.Content)), Mode: int64(f.Mode.Perm()),
			ModTime: modified.UTC().Truncate(time.Second), Uname: "root", Gname: "root", Format: tar.FormatGNU,
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.Content); err != nil {
			return err
		}
	}
	return nil
}

// folders returns the folders of files, parents first.
func folders(files []File) []string {
	var all []string
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Compressed returns content compressed with gzip, as manual pages are installed.
func Compressed(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
