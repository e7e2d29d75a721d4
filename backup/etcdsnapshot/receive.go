package etcdsnapshot

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
)

// hashSize is the size of the hash behind the database, in bytes. The size of the database itself is a multiple of alignment.
const hashSize, alignment = sha256.Size, 512

// Next returns the next message of etcd's stream: its data, and how many bytes of the database follow. It returns io.EOF behind the last
// one.
type Next func() (data []byte, remaining uint64, err error)

// Summary describes a snapshot that is complete.
type Summary struct {
	// Size is that of the database with its hash, in bytes.
	Size int64
	// SHA256 is the hash of the database.
	SHA256 [hashSize]byte
}

// Stream reads the snapshot that etcd sends, with the hash at its end, and without a file. Its Read returns io.EOF only if the snapshot is
// complete and the hash matches. It has one message of etcd in memory.
type Stream struct {
	next Next
	size int64

	data     []byte
	database hash.Hash
	read     int64
	sum      bytes.Buffer // the last 32 bytes
	err      error
}

// NewStream receives the first message, from which the size of the snapshot follows.
func NewStream(next Next) (*Stream, error) {
	data, remaining, err := next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: etcd sends nothing", ErrTruncated)
	}
	if err != nil {
		return nil, fmt.Errorf("receiving the snapshot: %w", err)
	}
	size := int64(len(data)) + int64(min(remaining, 1<<50))
	if size%alignment != 0 || size == 0 {
		return nil, fmt.Errorf("%w: etcd announces a database of %d bytes", ErrDamaged, size)
	}
	return &Stream{next: next, size: size + hashSize, data: data, database: sha256.New()}, nil
}

// Size returns the size of the database with its hash, in bytes. Exactly as many are read if there is no error.
func (s *Stream) Size() int64 { return s.size }

// Read implements io.Reader. Errors are ErrTruncated, ErrDamaged, or those of the stream.
func (s *Stream) Read(p []byte) (int, error) {
	for s.err == nil && len(s.data) == 0 {
		s.err = s.receive()
	}
	if s.err != nil {
		return 0, s.err
	}
	n := copy(p, s.data)
	chunk := s.data[:n]
	s.data = s.data[n:]
	if beyond := s.read + int64(n) - s.size; beyond > 0 {
		s.err = fmt.Errorf("%w: etcd sends more than the %d bytes it has announced", ErrDamaged, s.size)
		return 0, s.err
	}
	inDatabase := min(int64(n), max(0, s.size-hashSize-s.read))
	s.database.Write(chunk[:inDatabase])
	s.sum.Write(chunk[inDatabase:])
	s.read += int64(n)
	return n, nil
}

// receive receives the next message, or checks the snapshot at the end.
func (s *Stream) receive() error {
	data, _, err := s.next()
	switch {
	case err == nil:
		s.data = data
		return nil
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("receiving the snapshot: %w", err)
	case s.read < s.size:
		return fmt.Errorf("%w: etcd has sent %d of %d bytes", ErrTruncated, s.read, s.size)
	case !bytes.Equal(s.database.Sum(nil), s.sum.Bytes()):
		return fmt.Errorf("%w: its SHA-256 does not match", ErrDamaged)
	default:
		return io.EOF
	}
}

// Summary describes the snapshot, after Read has returned io.EOF.
func (s *Stream) Summary() Summary {
	return Summary{Size: s.size, SHA256: [hashSize]byte(s.database.Sum(nil))}
}

// Receive writes a snapshot with its hash to w. If there is an error, what was written must be dropped.
func Receive(w io.Writer, next Next) (Summary, error) {
	stream, err := NewStream(next)
	if err != nil {
		return Summary{}, err
	}
	if _, err := io.Copy(w, stream); err != nil {
		return Summary{}, err
	}
	return stream.Summary(), nil
}
