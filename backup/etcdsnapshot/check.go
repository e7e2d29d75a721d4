package etcdsnapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/cluster-api/backup/etcdsnapshot/pages"
)

// openChecked opens a snapshot whose hash and pages have been checked.
func openChecked(ctx context.Context, path string) (*os.File, Summary, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, Summary{}, fmt.Errorf("opening the snapshot: %w", err)
	}
	summary, err := checkFile(ctx, file)
	if err != nil {
		closing(file)
		return nil, Summary{}, err
	}
	return file, summary, nil
}

// checkFile checks the hash and the pages of a snapshot.
func checkFile(ctx context.Context, file *os.File) (Summary, error) {
	info, err := file.Stat()
	if err != nil {
		return Summary{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	size := info.Size() - hashSize
	if size <= 0 || size%alignment != 0 {
		return Summary{}, fmt.Errorf("%w: it has %d bytes, and no SHA-256 behind whole blocks", ErrTruncated, info.Size())
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, &whileLive{ctx, io.NewSectionReader(file, 0, size)}); err != nil {
		return Summary{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	want := make([]byte, hashSize)
	if _, err := file.ReadAt(want, size); err != nil {
		return Summary{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	if [hashSize]byte(want) != [hashSize]byte(hash.Sum(nil)) {
		return Summary{}, fmt.Errorf("%w: its SHA-256 does not match", ErrDamaged)
	}
	if err := pages.Check(ctx, file, size); errors.Is(err, pages.ErrDamaged) {
		return Summary{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	} else if err != nil {
		return Summary{}, err
	}
	return Summary{Size: info.Size(), SHA256: [hashSize]byte(want)}, nil
}

// whileLive is a reader that ends with its context.
type whileLive struct {
	ctx    context.Context //nolint:containedctx // io.Reader has no parameter for it
	reader io.Reader
}

// Read implements io.Reader.
func (r *whileLive) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.reader.Read(p)
}
