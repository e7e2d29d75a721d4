package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// typed are the errors of Readers, by name.
var typed = map[string]error{
	"wrong key": ErrWrongKey, "truncated": ErrTruncated, "damaged": ErrDamaged, "not an archive": ErrNotArchive,
}

// kindOf returns the names of the errors that err wraps.
func kindOf(err error) string {
	var names []string
	for name, e := range typed {
		if errors.Is(err, e) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func TestWriterErrors(t *testing.T) {
	key := identity(t)
	broken := errors.New("connection reset")
	tests := []struct {
		reason string
		add    func(w *Writer) error
		want   string
	}{
		{"content that ends early", func(w *Writer) error { return w.Add("a", 5, strings.NewReader("1234")) }, "adding entry a: the content has 4 bytes instead of 5"},
		{"content that goes on", func(w *Writer) error { return w.Add("a", 5, strings.NewReader("123456")) }, "adding entry a: the content has more than 5 bytes"},
		{"content that cannot be read", func(w *Writer) error { return w.Add("a", 5, iotest.ErrReader(broken)) }, "adding entry a: connection reset"},
		{"content whose end cannot be read", func(w *Writer) error {
			return w.Add("a", 4, io.MultiReader(strings.NewReader("1234"), iotest.ErrReader(broken)))
		}, "adding entry a: connection reset"},
		{"a negative size", func(w *Writer) error { return w.Add("a", -1, nil) }, "adding entry a: invalid size -1"},
		{"a name that leaves the folder", func(w *Writer) error { return w.Add("../a", 0, nil) }, `invalid name "../a" of an entry`},
		{"an absolute name", func(w *Writer) error { return w.Add("/a", 0, nil) }, `invalid name "/a" of an entry`},
		{"a name that cannot be printed", func(w *Writer) error { return w.Add("a\n", 0, nil) }, `invalid name "a\n" of an entry`},
		{"the name of the checksums", func(w *Writer) error { return w.Add(sums, 0, nil) }, `invalid name "SHA256SUMS" of an entry`},
		{"a name that is too long", func(w *Writer) error { return w.Add(strings.Repeat("a", 256), 0, nil) }, fmt.Sprintf("invalid name %q of an entry", strings.Repeat("a", 256))},
		{"a name twice", func(w *Writer) error {
			return errors.Join(w.Add("a", 1, strings.NewReader("1")), w.Add("a", 1, strings.NewReader("1")))
		}, "entry a already exists"},
		{"too many entries", func(w *Writer) error {
			for i := range MaxEntries {
				if err := w.Add(fmt.Sprint(i), 0, strings.NewReader("")); err != nil {
					return err
				}
			}
			return w.Add("a", 0, nil)
		}, "adding entry a: an archive has at most 1000 entries"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var file bytes.Buffer
			w, err := NewWriter(&file, key.Recipient())
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.add(w); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if err := w.Add("b", 0, strings.NewReader("")); err == nil || err.Error() != tc.want {
				t.Errorf("another entry: %v, want %s", err, tc.want)
			}
			if err := w.Close(); err == nil || err.Error() != tc.want {
				t.Errorf("Close: %v, want %s", err, tc.want)
			}
			if _, err := read(&file, key); kindOf(err) != "truncated" {
				t.Errorf("what was written is read: %v", err)
			}
		})
	}
}

// full fails when more than its number of bytes is written.
type full int

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorsOfTheUnderlyingWriter(t *testing.T) {
	key := identity(t)
	size := len(written(t, entries(), key.Recipient()))
	for _, limit := range []int{0, 100, 70 << 10, size - 1} {
		out := full(limit)
		w, err := NewWriter(&out, key.Recipient())
		for _, e := range entries() {
			if err == nil {
				err = w.Add(e.Name, int64(len(e.Content)), strings.NewReader(e.Content))
			}
		}
		if err == nil {
			err = w.Close()
		}
		if !errors.Is(err, errFull) {
			t.Errorf("after %d bytes: %v", limit, err)
		}
	}
	if w, err := NewWriter(io.Discard); err == nil {
		t.Errorf("a Writer without recipients: %v", w)
	}
	w, err := NewWriter(io.Discard, key.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Add("a", 0, strings.NewReader("")); !errors.Is(err, errClosed) {
		t.Errorf("Add after Close: %v", err)
	}
}

// TestTruncated cuts an archive everywhere it matters: in the header, at the limits of chunks, and before the last byte.
func TestTruncated(t *testing.T) {
	key := identity(t)
	file := written(t, entries(), key.Recipient())
	header := bytes.Index(file, []byte("\n---")) + len("\n--- ") + 44
	if (len(file)-header-nonce)%(chunk+overhead) != 0 {
		t.Fatalf("the last chunk is not full: %d bytes, a header of %d", len(file), header)
	}
	lengths := []int{0, 5, len(intro), header - 1, header, header + nonce - 1, header + nonce, header + nonce + 1}
	for end := header + nonce + chunk + overhead; end <= len(file); end += chunk + overhead {
		lengths = append(lengths, end-1, end-overhead, min(end, len(file)-1), min(end+1, len(file)-1))
	}
	for _, length := range lengths {
		if _, err := read(bytes.NewReader(file[:length]), key); kindOf(err) != "truncated" {
			t.Errorf("%d of %d bytes: %v", length, len(file), err)
		}
	}
}

// TestBitFlips flips bits of an archive. In the header, the error depends on what they mean.
func TestBitFlips(t *testing.T) {
	key := identity(t)
	file := written(t, entries(), key.Recipient())
	header := bytes.Index(file, []byte("\n---")) + len("\n--- ") + 44
	positions := []int{header, header + nonce, len(file) - 1, len(file) - chunk, len(file) - chunk/2}
	for position := header + 1; position < len(file); position += 9973 {
		positions = append(positions, position)
	}
	for _, position := range positions {
		damaged := bytes.Clone(file)
		damaged[position] ^= 0x10
		if _, err := read(bytes.NewReader(damaged), key); kindOf(err) != "damaged" {
			t.Errorf("at byte %d of %d: %v", position, len(file), err)
		}
	}
	for position := range header {
		damaged := bytes.Clone(file)
		damaged[position] ^= 0x01
		if _, err := read(bytes.NewReader(damaged), key); kindOf(err) == "" {
			t.Errorf("at byte %d of the header: %v", position, err)
		}
	}
}

// sealed returns a file with age around a content.
func sealed(t testing.TB, content []byte, recipients ...age.Recipient) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := age.Encrypt(&file, recipients...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func compressed(t testing.TB, content []byte, options ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(content, nil)
}

// packed returns a tar file of headers, whose content is their Linkname unless they are links.
func packed(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var file bytes.Buffer
	w := tar.NewWriter(&file)
	for _, header := range headers {
		content := ""
		if header.Typeflag == tar.TypeReg {
			content, header.Linkname = header.Linkname, ""
			header.Size = int64(len(content))
		}
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func file(name, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: content}
}

func TestReaderErrors(t *testing.T) {
	key, other := identity(t), identity(t)
	passphrase, err := age.NewScryptRecipient("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	passphrase.SetWorkFactor(10)
	archive := written(t, entries(), key.Recipient())
	inside := func(content []byte) []byte { return sealed(t, compressed(t, content), key.Recipient()) }
	sum := func(name string) string {
		return "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  " + name + "\n"
	}
	var many []tar.Header
	for i := range MaxEntries + 1 {
		many = append(many, file(fmt.Sprint(i), ""))
	}
	pax := file("a", "")
	pax.PAXRecords = map[string]string{"VENDOR.note": "x"}
	tests := []struct {
		reason string
		file   []byte
		want   string
	}{
		{"another key", written(t, entries(), other.Recipient()), "wrong key"},
		{"a passphrase", sealed(t, nil, passphrase), "wrong key"},
		{"an empty file", nil, "truncated"},
		{"another file", []byte("apiVersion: v1\n"), "not an archive"},
		{"a file that begins like an archive", []byte("age-encryption.org/v2\n"), "not an archive"},
		{"an endless header", []byte(intro + strings.Repeat("-> X25519 x\n\n", maxHeader)), "damaged"},
		{"an endless line", []byte(intro + strings.Repeat("x", 2*maxHeader)), "damaged"},
		{"an invalid header", []byte(intro + "garbage\n--- x\n"), "damaged"},
		{"bytes behind its end", append(bytes.Clone(archive), 0), "damaged"},
		{"two archives in a row", append(bytes.Clone(archive), archive...), "damaged"},
		{"an encrypted text", sealed(t, []byte("hello"), key.Recipient()), "not an archive"},
		{"nothing encrypted", sealed(t, nil, key.Recipient()), "not an archive"},
		{"a compressed text", inside(bytes.Repeat([]byte("hello "), 200)), "not an archive"},
		{"a window that needs much memory", sealed(t, compressed(t, make([]byte, 9<<20), zstd.WithWindowSize(8<<20)), key.Recipient()), "damaged"},
		{"no checksums", inside(packed(t, file("a", ""))), "damaged"},
		{"no entries at all", inside(packed(t)), "not an archive"},
		{"a wrong checksum", inside(packed(t, file("a", "x"), file(sums, sum("a")))), "damaged"},
		{"a checksum of an entry that is missing", inside(packed(t, file("a", ""), file(sums, sum("a")+sum("b")))), "damaged"},
		{"an entry without a checksum", inside(packed(t, file("a", ""), file("b", ""), file(sums, sum("a")))), "damaged"},
		{"entries behind the checksums", inside(packed(t, file("a", ""), file(sums, sum("a")), file("b", ""))), "damaged"},
		{"data behind the end", inside(append(packed(t, file("a", ""), file(sums, sum("a"))), "x"...)), "damaged"},
		{"endless zeros behind the end", inside(append(packed(t, file("a", ""), file(sums, sum("a"))), make([]byte, 1<<20)...)), "damaged"},
		{"the same entry twice", inside(packed(t, file("a", ""), file("a", ""))), "damaged"},
		{"too many entries", inside(packed(t, many...)), "damaged"},
		{"a name outside of the folder", inside(packed(t, file("../a", ""))), "damaged"},
		{"a link", inside(packed(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc/passwd"})), "damaged"},
		{"a folder", inside(packed(t, tar.Header{Typeflag: tar.TypeDir, Name: "a/"})), "damaged"},
		{"a link as checksums", inside(packed(t, tar.Header{Typeflag: tar.TypeSymlink, Name: sums, Linkname: "/etc/passwd"})), "damaged"},
		{"huge checksums", inside(packed(t, file(sums, strings.Repeat("x", maxSums+1)))), "damaged"},
		{"records that change what an entry is", inside(packed(t, pax)), "damaged"},
		{"a tar file that is cut off", inside(packed(t, file("a", strings.Repeat("x", 2000)))[:1500]), "damaged"},
		{"what tar writes, with its last block filled", inside(append(packed(t, file("a", ""), file(sums, sum("a"))), make([]byte, 9<<10)...)), ""},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := read(bytes.NewReader(tc.file), key)
			if kindOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("a long error: %v", err)
			}
		})
	}
}

func TestErrorsOfTheUnderlyingReader(t *testing.T) {
	key := identity(t)
	file := written(t, entries(), key.Recipient())
	broken := errors.New("connection reset")
	for _, length := range []int{0, 30, 230, 100 << 10, len(file) - 1, len(file)} {
		for _, cause := range []error{broken, io.ErrUnexpectedEOF} {
			_, err := read(io.MultiReader(bytes.NewReader(file[:length]), iotest.ErrReader(cause)), key)
			if !errors.Is(err, cause) || kindOf(err) != "" {
				t.Errorf("after %d of %d bytes: %v, want %v", length, len(file), err, cause)
			}
		}
	}
	if r, err := NewReader(bytes.NewReader(file)); err == nil {
		t.Errorf("a Reader without identities: %v", r)
	}
}

func TestSmallEntries(t *testing.T) {
	key := identity(t)
	r, err := NewReader(bytes.NewReader(written(t, []entry{{"a", string(make([]byte, MaxSmall+1))}, {"b", string(make([]byte, MaxSmall))}}, key.Recipient())), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadSmall(); err == nil || err.Error() != "entry a has 16777217 bytes, more than 16777216" {
		t.Errorf("got %v", err)
	}
	if _, _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if content, err := r.ReadSmall(); err != nil || len(content) != MaxSmall {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}
