package backup

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// temporarySuffix is that of files that a component is going to rename.
const temporarySuffix = ".new"

// block is the size in bytes that tar rounds up to.
const block = 512

// folder is an open folder of files: those that existed when it was opened, with their sizes of that time.
type folder struct {
	files []openFile
	size  int64 // of all together as tar
}

type openFile struct {
	*os.File
	header *tar.Header
}

// openFolder opens all files of a folder, so that they can be read after they are replaced or removed. There are none if the folder does
// not exist.
func openFolder(root string) (_ *folder, err error) {
	f := &folder{size: 2 * block} // the end
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("read the files of components: %w", err), f.Close())
		}
	}()
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Removed since the folder was listed, or there is no folder.
		}
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, temporarySuffix) {
			return err
		}
		return f.open(root, path)
	})
	return f, err
}

func (f *folder) open(root, path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Size: info.Size(), Mode: 0o600, Format: tar.FormatPAX}
	length := counter(0)
	if err := tar.NewWriter(&length).WriteHeader(header); err != nil {
		return errors.Join(err, file.Close())
	}
	f.files = append(f.files, openFile{File: file, header: header})
	f.size += int64(length) + (info.Size()+block-1)/block*block
	return nil
}

// WriteTo writes the files as tar. It has f.size bytes.
func (f *folder) WriteTo(w io.Writer) (int64, error) {
	written := counter(0)
	out := tar.NewWriter(io.MultiWriter(w, &written))
	for _, file := range f.files {
		if err := out.WriteHeader(file.header); err != nil {
			return int64(written), err
		}
		if _, err := io.CopyN(out, file, file.header.Size); err != nil {
			return int64(written), fmt.Errorf("file %s of a component became shorter while it was read: run the backup again: %w",
				file.header.Name, err)
		}
	}
	return int64(written), out.Close()
}

// Reader returns a reader of what WriteTo writes.
func (f *folder) Reader() io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		_, err := f.WriteTo(writer)
		writer.CloseWithError(err)
	}()
	return reader
}

// Close closes all files.
func (f *folder) Close() error {
	var errs []error
	for _, file := range f.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// extract writes the files of a tar of this size into a folder, which it creates.
func extract(r io.Reader, size int64, root string) error {
	for in := tar.NewReader(r); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", componentsEntry, err)
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) || strings.Contains(header.Name, `\`) {
			return fmt.Errorf("%s contains %q, which is not a file in its folder", componentsEntry, header.Name)
		}
		if size -= header.Size; size < 0 { // Sparse files can be larger than their archive.
			return fmt.Errorf("%s contains files that are larger than it", componentsEntry)
		}
		path := filepath.Join(root, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := writeStream(path, in); err != nil {
			return err
		}
	}
}

// writeStream writes and syncs a new file that only this user can read.
func writeStream(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
