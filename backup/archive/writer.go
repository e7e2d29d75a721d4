package archive

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// Writer writes an archive. It is for one goroutine.
type Writer struct {
	cipher io.WriteCloser
	zstd   *zstd.Encoder
	tar    *tar.Writer

	names map[string]bool
	sums  strings.Builder
	// err is the first error, and final: an archive that has one never gets an end, so that Readers find it truncated.
	err error
}

// errClosed is the error of Writers after Close.
var errClosed = errors.New("the archive is closed")

// NewWriter returns a Writer of an archive that the identity of each recipient can decrypt. The archive is complete once Close has returned
// without an error; if there is one, what w has got must be dropped. It does not close w.
func NewWriter(w io.Writer, recipients ...age.Recipient) (*Writer, error) {
	if len(recipients) == 0 || len(recipients) > MaxRecipients {
		return nil, fmt.Errorf("an archive needs 1 to %d recipients, not %d", MaxRecipients, len(recipients))
	}
	cipher, err := age.Encrypt(w, recipients...)
	if err != nil {
		return nil, fmt.Errorf("encrypting the archive: %w", err)
	}
	// One goroutine, the caller's: more would need memory for each, and etcd sends snapshots slower than one compresses.
	compressed, err := zstd.NewWriter(cipher, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithEncoderPadding(chunk))
	if err != nil {
		return nil, fmt.Errorf("compressing the archive: %w", err)
	}
	return &Writer{cipher: cipher, zstd: compressed, tar: tar.NewWriter(compressed), names: map[string]bool{}}, nil
}

// Add adds an entry, whose content must have exactly size bytes. The name is a path with slashes, of at most MaxName letters, digits, and
// "-_.". An error is final: all further calls return it.
func (w *Writer) Add(name string, size int64, content io.Reader) error {
	if w.err == nil {
		w.err = w.add(name, size, content)
	}
	return w.err
}

func (w *Writer) add(name string, size int64, content io.Reader) error {
	switch {
	case !validName(name) || name == sums:
		return fmt.Errorf("invalid name %q of an entry", name)
	case w.names[name]:
		return fmt.Errorf("entry %s already exists", name)
	case len(w.names) == MaxEntries:
		return fmt.Errorf("adding entry %s: an archive has at most %d entries", name, MaxEntries)
	case size < 0:
		return fmt.Errorf("adding entry %s: invalid size %d", name, size)
	}
	w.names[name] = true
	hash := sha256.New()
	if err := w.write(name, size, io.TeeReader(content, hash)); err != nil {
		return fmt.Errorf("adding entry %s: %w", name, err)
	}
	w.sums.WriteString(line(hash.Sum(nil), name))
	return nil
}

// write writes the header and the content of an entry.
func (w *Writer) write(name string, size int64, content io.Reader) error {
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600}); err != nil {
		return err
	}
	switch n, err := io.CopyN(w.tar, content, size); {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the content has %d bytes instead of %d", n, size)
	case err != nil:
		return err
	}
	switch _, err := io.ReadFull(content, make([]byte, 1)); {
	case err == nil:
		return fmt.Errorf("the content has more than %d bytes", size)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// Close completes the archive. After an error of Add it returns this, and the archive stays truncated.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if w.err = w.close(); w.err != nil {
		return w.err
	}
	w.err = errClosed
	return nil
}

func (w *Writer) close() error {
	if err := w.write(sums, int64(w.sums.Len()), strings.NewReader(w.sums.String())); err != nil {
		return fmt.Errorf("adding entry %s: %w", sums, err)
	}
	for _, layer := range []io.Closer{w.tar, w.zstd, w.cipher} {
		if err := layer.Close(); err != nil {
			return fmt.Errorf("completing the archive: %w", err)
		}
	}
	return nil
}

// line returns the line of SHA256SUMS about an entry.
func line(hash []byte, name string) string {
	return fmt.Sprintf("%x  %s\n", hash, name)
}

// validName reports whether an entry can have a name: a relative path that means the same on all systems, cannot leave its folder, and
// can be printed.
func validName(name string) bool {
	if len(name) > MaxName || name == "." || !fs.ValidPath(name) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./", r)
	})
}
