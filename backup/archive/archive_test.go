package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

type entry struct{ Name, Content string }

// entries are those of a small backup: empty ones, and ones that do not compress, are among them.
func entries() []entry {
	noise := make([]byte, 300<<10)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	return []entry{
		{"etcd/snapshot.db", string(noise)},
		{"objects/default/Cluster.c1.yaml", strings.Repeat("kind: Cluster\n", 100)},
		{"empty", ""},
		{strings.Repeat("long-name/", 25) + "last", "x"},
	}
}

func identity(t testing.TB) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

func written(t testing.TB, entries []entry, recipients ...age.Recipient) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, recipients...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.Add(e.Name, int64(len(e.Content)), strings.NewReader(e.Content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// read reads an archive to its end.
func read(file io.Reader, identities ...age.Identity) ([]entry, error) {
	r, err := NewReader(file, identities...)
	if err != nil {
		return nil, err
	}
	var all []entry
	for {
		name, size, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		content, err := r.ReadSmall()
		if err != nil {
			return all, err
		}
		if int64(len(content)) != size {
			return all, fmt.Errorf("%s has %d bytes instead of %d", name, len(content), size)
		}
		all = append(all, entry{name, string(content)})
	}
}

func TestRoundTrip(t *testing.T) {
	one, other := identity(t), identity(t)
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	both := written(t, entries(), one.Recipient(), other.Recipient())
	tests := []struct {
		reason     string
		file       []byte
		identities []age.Identity
		want       []entry
	}{
		{"the identity of the first recipient", both, []age.Identity{one}, entries()},
		{"the identity of the second recipient", both, []age.Identity{other}, entries()},
		{"one of several identities, after a rotation", written(t, entries(), one.Recipient()), []age.Identity{other, one}, entries()},
		{"post-quantum recipients", written(t, entries(), hybrid.Recipient()), []age.Identity{hybrid}, entries()},
		{"an archive without entries", written(t, nil, one.Recipient()), []age.Identity{one}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := read(bytes.NewReader(tc.file), tc.identities...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStandardPrograms reads an archive as the programs age, zstd, tar and sha256sum do.
func TestStandardPrograms(t *testing.T) {
	key := identity(t)
	decrypted, err := age.Decrypt(bytes.NewReader(written(t, entries(), key.Recipient())), key)
	if err != nil {
		t.Fatal(err)
	}
	decompressed, err := zstd.NewReader(decrypted)
	if err != nil {
		t.Fatal(err)
	}
	defer decompressed.Close()
	var got []entry
	for r := tar.NewReader(decompressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry{header.Name, string(content)})
	}
	var sums strings.Builder
	for _, e := range entries() {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(e.Content)), e.Name)
	}
	if diff := cmp.Diff(append(entries(), entry{"SHA256SUMS", sums.String()}), got); diff != "" {
		t.Error(diff)
	}
}

func TestSkippedEntriesAreVerified(t *testing.T) {
	key := identity(t)
	r, err := NewReader(bytes.NewReader(written(t, entries(), key.Recipient())), key)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for err == nil {
		var name string
		if name, _, err = r.Next(); err == nil {
			names = append(names, name)
			// A part of the content is read only.
			if _, err := r.Read(make([]byte, 10)); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
	}
	if !errors.Is(err, io.EOF) || len(names) != len(entries()) {
		t.Errorf("read %q, %v", names, err)
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("Next behind the end: %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("Read behind the end: %v", err)
	}
}

// bounded is the most memory that a Writer or a Reader may have in use, see the comment of the package.
const bounded = 6 << 20

// heap returns the bytes of the heap that are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// sampled is content of random bytes, half of which compress. It measures the heap every 8 MiB.
type sampled struct {
	random     *rand.ChaCha8
	read, most uint64
}

func (s *sampled) Read(p []byte) (int, error) {
	n, _ := s.random.Read(p[:(len(p)+1)/2])
	clear(p[n:])
	before := s.read / (8 << 20)
	if s.read += uint64(len(p)); s.read/(8<<20) != before {
		s.most = max(s.most, heap())
	}
	return len(p), nil
}

// TestMemory writes and reads 64 MiB. The file is not in memory at any time: what is written first is measured, then both together
// through a pipe.
func TestMemory(t *testing.T) {
	const size = 64 << 20
	key := identity(t)
	write := func(out io.Writer) (*sampled, error) {
		content := &sampled{random: rand.NewChaCha8([32]byte{})}
		w, err := NewWriter(out, key.Recipient())
		if err != nil {
			return nil, err
		}
		if err := w.Add("snapshot.db", size, io.LimitReader(content, size)); err != nil {
			return nil, err
		}
		return content, w.Close()
	}
	before := heap()
	content, err := write(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	used := int64(content.most - before)
	t.Logf("writing: %d KiB", used>>10)
	if used > bounded {
		t.Errorf("writing %d bytes needs %d bytes of memory", size, used)
	}

	in, out := io.Pipe()
	go func() {
		_, err := write(out)
		out.CloseWithError(err)
	}()
	before = heap()
	r, err := NewReader(in, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	var most uint64
	for range size / (8 << 20) {
		if _, err := io.CopyN(io.Discard, r, 8<<20); err != nil {
			t.Fatal(err)
		}
		most = max(most, heap())
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	t.Logf("writing and reading: %d KiB", int64(most-before)>>10)
	if int64(most-before) > 2*bounded {
		t.Errorf("writing and reading %d bytes needs %d bytes of memory", size, most-before)
	}
}
