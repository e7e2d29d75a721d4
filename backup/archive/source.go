package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"filippo.io/age"
)

const (
	intro  = "age-encryption.org/v1\n"
	footer = "---"
)

// source is the encrypted file behind its header.
type source struct {
	reader io.Reader
	// size is the number of bytes read, ended whether there are no more.
	size  int64
	ended bool
	// err is the first error that is not the end: of the reader, not of what it has read.
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.reader.Read(p)
	s.size += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		s.ended = true
	case err != nil && s.err == nil:
		s.err = err
	}
	return n, err
}

// cut reports whether the end of the file is missing, after it could not be decrypted: the last chunk of a complete file is full.
func (s *source) cut() bool {
	return s.ended && (s.size <= nonce || (s.size-nonce)%(chunk+overhead) != 0)
}

// plain is the decrypted content of a file.
type plain struct {
	reader io.Reader
	source *source
	// err is the error that ended it, if it is not the end of the content.
	err error
}

// Read implements io.Reader.
func (p *plain) Read(b []byte) (int, error) {
	n, err := p.reader.Read(b)
	if err == nil || err == io.EOF { // age does not wrap it
		return n, err
	}
	if p.err == nil {
		p.err = p.classify(err)
	}
	return n, p.err
}

func (p *plain) classify(err error) error {
	switch {
	case p.source.err != nil:
		return fmt.Errorf("reading the archive: %w", p.source.err)
	case errors.Is(err, io.ErrUnexpectedEOF), p.source.cut():
		return fmt.Errorf("%w after %d encrypted bytes", ErrTruncated, p.source.size)
	default:
		return fmt.Errorf("%w: its content cannot be authenticated at about %d encrypted bytes", ErrDamaged, p.source.size)
	}
}

// decrypt reads the header of the file, and returns its content.
func decrypt(r io.Reader, identities []age.Identity) (*plain, error) {
	if len(identities) == 0 || len(identities) > MaxRecipients {
		return nil, fmt.Errorf("reading an archive needs 1 to %d identities, not %d", MaxRecipients, len(identities))
	}
	buffered := bufio.NewReader(r)
	header, err := readHeader(buffered)
	if err != nil {
		return nil, err
	}
	in := &source{reader: buffered}
	// age reads through a buffer of its own, and then directly.
	content, err := age.Decrypt(io.MultiReader(bytes.NewReader(header), in), identities...)
	var noMatch *age.NoIdentityMatchError
	switch {
	case err == nil:
		return &plain{reader: content, source: in}, nil
	case in.err != nil:
		return nil, fmt.Errorf("reading the archive: %w", in.err)
	case errors.As(err, &noMatch):
		return nil, wrongKey(len(identities), noMatch.StanzaTypes)
	case in.ended && in.size < nonce:
		return nil, fmt.Errorf("%w behind its header", ErrTruncated)
	default:
		// The cause quotes the header, which anything may be.
		return nil, fmt.Errorf("%w: its header is invalid", ErrDamaged)
	}
}

// wrongKey returns the error about recipients that do not match. Their types tell about other mistakes.
func wrongKey(identities int, types []string) error {
	if slices.Contains(types, "scrypt") {
		return fmt.Errorf("%w: it is encrypted with a passphrase", ErrWrongKey)
	}
	return fmt.Errorf("%w: it has %d recipients, and none is of the %d identities", ErrWrongKey, len(types), identities)
}

// readHeader returns the header of an age file, without knowing more about it than where it ends.
func readHeader(r *bufio.Reader) ([]byte, error) {
	var header []byte
	for {
		part, err := r.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		atStart := strings.HasSuffix(string(header), "\n")
		header = append(header, part...)
		switch begin := header[:min(len(header), len(intro))]; {
		case err != nil && !full && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("reading the archive: %w", err)
		case len(header) == 0:
			return nil, fmt.Errorf("%w: the file is empty", ErrTruncated)
		case !strings.HasPrefix(intro, string(begin)):
			return nil, fmt.Errorf("%w: the file is not encrypted with age", ErrNotArchive)
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w in its header", ErrTruncated)
		case len(header) > maxHeader:
			return nil, fmt.Errorf("%w: its header exceeds %d bytes", ErrDamaged, maxHeader)
		case atStart && !full && strings.HasPrefix(string(part), footer):
			return header, nil
		}
	}
}
