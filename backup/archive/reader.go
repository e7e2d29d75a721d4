package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// maxSums is the largest size of SHA256SUMS.
const maxSums = MaxEntries * (2*sha256.Size + len("  \n") + MaxName)

// maxEnd is the most that may follow the last entry, in bytes: tar programs fill the last block of 10 KiB, ours does not.
const maxEnd = 64 << 10

// Reader reads an archive. It is for one goroutine, and needs no Close.
type Reader struct {
	plain *plain
	zstd  *zstd.Decoder
	tar   *tar.Reader

	// name, size and hash are of the current entry; left is what Read has not returned of it yet.
	name       string
	size, left int64
	hash       hash.Hash
	names      map[string]bool
	sums       bytes.Buffer
	// err is the first error, or io.EOF, and final.
	err error
}

// NewReader returns a Reader of an archive that one of the identities can decrypt. It reads the header, and returns ErrWrongKey,
// ErrTruncated, ErrDamaged, ErrNotArchive, or an error of r.
func NewReader(r io.Reader, identities ...age.Identity) (*Reader, error) {
	content, err := decrypt(r, identities)
	if err != nil {
		return nil, err
	}
	// With a concurrency of one there are no goroutines that would have to be ended.
	decompressed, err := zstd.NewReader(content, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		return nil, fmt.Errorf("decompressing the archive: %w", err)
	}
	return &Reader{plain: content, zstd: decompressed, tar: tar.NewReader(decompressed), names: map[string]bool{}}, nil
}

// Next returns the name and the size in bytes of the next entry, whose content Read returns from then on. What was not read of the
// current entry is skipped. It returns io.EOF behind the last entry, if the archive is complete and all checksums match; nothing of an
// archive should be used before. Names are paths that do not leave their folder, and unique.
func (r *Reader) Next() (name string, size int64, err error) {
	if r.err == nil {
		r.err = r.next()
	}
	if r.err != nil {
		return "", 0, r.err
	}
	return r.name, r.size, nil
}

// Read reads the content of the current entry. io.EOF is the end of the entry.
func (r *Reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.hash == nil || r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.tar.Read(p)
	r.hash.Write(p[:n])
	r.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && r.left == 0:
		return n, io.EOF
	case err != nil:
		r.err = r.classify(err)
	}
	return n, r.err
}

// ReadSmall returns the content of the current entry, which must not have more than MaxSmall bytes.
func (r *Reader) ReadSmall() ([]byte, error) {
	if r.err == nil && r.size > MaxSmall {
		return nil, fmt.Errorf("entry %s has %d bytes, more than %d", r.name, r.size, MaxSmall)
	}
	// It grows as the content is read: a size alone reserves no memory.
	return io.ReadAll(r)
}

func (r *Reader) next() error {
	if err := r.finish(); err != nil {
		return err
	}
	header, err := r.tar.Next()
	switch {
	case errors.Is(err, io.EOF) && r.plain.err == nil && len(r.names) == 0:
		return fmt.Errorf("%w: the encrypted file has no entries", ErrNotArchive)
	case errors.Is(err, io.EOF) && r.plain.err == nil:
		return fmt.Errorf("%w: it ends without %s", ErrDamaged, sums)
	case err != nil:
		return r.classify(err)
	case header.Name == sums:
		return r.end(header)
	case len(r.names) == MaxEntries:
		return fmt.Errorf("%w: it has more than %d entries", ErrDamaged, MaxEntries)
	case !validName(header.Name):
		return fmt.Errorf("%w: an entry has an invalid name", ErrDamaged)
	case !plainFile(header):
		return fmt.Errorf("%w: entry %s is not a regular file", ErrDamaged, header.Name)
	case r.names[header.Name]:
		return fmt.Errorf("%w: it has entry %s twice", ErrDamaged, header.Name)
	}
	r.names[header.Name] = true
	r.name, r.size, r.left, r.hash = header.Name, header.Size, header.Size, sha256.New()
	return nil
}

// finish reads the rest of the current entry, and records its checksum.
func (r *Reader) finish() error {
	if r.hash == nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, struct{ io.Reader }{r}); err != nil {
		return err
	}
	r.sums.WriteString(line(r.hash.Sum(nil), r.name))
	r.hash = nil
	return nil
}

// end checks the last entry, and that the archive ends behind it. It returns io.EOF if all is well.
func (r *Reader) end(header *tar.Header) error {
	if header.Size > int64(maxSums) || !plainFile(header) {
		return fmt.Errorf("%w: %s is invalid", ErrDamaged, sums)
	}
	want, err := io.ReadAll(r.tar)
	if err != nil {
		return r.classify(err)
	}
	if err := compare(r.sums.Bytes(), want); err != nil {
		return err
	}
	switch _, err := r.tar.Next(); {
	case err == nil:
		return fmt.Errorf("%w: it has entries behind %s", ErrDamaged, sums)
	case !errors.Is(err, io.EOF):
		return r.classify(err)
	}
	return r.drain()
}

// drain reads what follows the last entry. Only the end of the compressed data has passed age's check of the end.
func (r *Reader) drain() error {
	rest, err := io.ReadAll(io.LimitReader(r.zstd, maxEnd+1))
	switch {
	case err != nil:
		return r.classify(err)
	case len(rest) > maxEnd || len(bytes.Trim(rest, "\x00")) > 0:
		return fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	return io.EOF
}

// compare returns an error with the first entry whose checksums differ.
func compare(got, want []byte) error {
	for line := range bytes.Lines(got) {
		rest, found := bytes.CutPrefix(want, line)
		if !found {
			return fmt.Errorf("%w: the checksum of entry %s does not match", ErrDamaged, bytes.TrimSpace(line[2*sha256.Size:]))
		}
		want = rest
	}
	if len(want) > 0 {
		return fmt.Errorf("%w: %s has entries that are missing", ErrDamaged, sums)
	}
	return nil
}

// plainFile reports whether an entry is a file without special features. Sparse ones have other sizes than their data.
func plainFile(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if key != "path" && key != "size" {
			return false
		}
	}
	return header.Typeflag == tar.TypeReg && header.Size >= 0
}

// classify returns the error of a Reader for an error of tar or zstd, which may have its cause below.
func (r *Reader) classify(err error) error {
	switch {
	case r.plain.err != nil:
		return r.plain.err
	case len(r.names) == 0 && (errors.Is(err, zstd.ErrMagicMismatch) || errors.Is(err, tar.ErrHeader)):
		return fmt.Errorf("%w: the encrypted file has other content: %w", ErrNotArchive, err)
	default:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
}
