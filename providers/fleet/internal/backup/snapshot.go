package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
)

// maxSnapshot is the largest snapshot that is accepted, in bytes. etcd recommends at most 8 GiB.
const maxSnapshot = 64 << 30

// snapshot reads the chunks of an etcd member's snapshot as one stream, and verifies its checksum at the end.
type snapshot struct {
	next func() (chunk []byte, remaining uint64, err error)
	// size is the size of the database in bytes; the checksum follows it.
	size int64
	read int64
	rest []byte
	hash hash.Hash
	sum  []byte
}

// open reads the first chunk, which announces the size.
func open(next func() ([]byte, uint64, error)) (*snapshot, error) {
	chunk, remaining, err := next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the etcd member sent an empty snapshot")
	}
	if err != nil {
		return nil, err
	}
	if remaining > maxSnapshot || len(chunk) == 0 {
		return nil, fmt.Errorf("the etcd member announced a snapshot of %d bytes, more than %d", remaining, int64(maxSnapshot))
	}
	return &snapshot{next: next, size: int64(len(chunk)) + int64(remaining), rest: chunk, hash: sha256.New()}, nil
}

// total is how many bytes Read returns.
func (s *snapshot) total() int64 { return s.size + sha256.Size }

// Read implements io.Reader. It returns io.EOF only if the checksum is that of the database.
func (s *snapshot) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		chunk, _, err := s.next()
		if errors.Is(err, io.EOF) {
			return 0, s.verify()
		}
		if err != nil {
			return 0, err
		}
		s.rest = chunk
	}
	n := copy(p, s.rest)
	content := p[:n]
	if left := s.size - s.read; int64(n) > left {
		s.sum = append(s.sum, content[left:]...)
		content = content[:left]
	}
	if len(s.sum) > sha256.Size {
		return 0, errors.New("the etcd member sent more than it announced")
	}
	s.hash.Write(content)
	s.read += int64(len(content))
	s.rest = s.rest[n:]
	return n, nil
}

// verify returns io.EOF if everything was read and the checksum matches.
func (s *snapshot) verify() error {
	switch {
	case s.read < s.size || len(s.sum) < sha256.Size:
		return errors.New("the etcd member sent less than it announced")
	case !bytes.Equal(s.hash.Sum(nil), s.sum):
		return errors.New("the checksum of the etcd member's snapshot does not match its content")
	}
	return io.EOF
}
