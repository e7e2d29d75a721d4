package distribution_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
)

// unpacked returns the files of a compressed tar: their modes and contents by path, without folders.
func unpacked(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	r, out := tar.NewReader(zipped), map[string]string{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
		}
		if h.Typeflag == tar.TypeReg {
			out[h.Name] = fmt.Sprintf("%04o %s", h.Mode, content)
		}
	}
}

// members returns the members of an archive of ar.
func members(t *testing.T, archive []byte) (names []string, contents map[string][]byte) {
	t.Helper()
	rest, ok := bytes.CutPrefix(archive, []byte("!<arch>\n"))
	if !ok {
		t.Fatal("no archive of ar")
	}
	contents = map[string][]byte{}
	for len(rest) > 0 {
		if len(rest) < 60 || string(rest[58:60]) != "`\n" {
			t.Fatalf("no header at %d", len(archive)-len(rest))
		}
		name := strings.TrimSpace(string(rest[:16]))
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || size > len(rest)-60 {
			t.Fatalf("%s has size %d, %v", name, size, err)
		}
		names, contents[name] = append(names, name), rest[60:60+size]
		rest = rest[60+size+size%2:]
	}
	return names, contents
}

// Tags of headers of RPM.
const (
	tagName, tagVersion, tagRelease, tagLicense, tagArch = 1000, 1001, 1002, 1014, 1022
	tagPostin, tagPreun, tagFileFlags, tagBuildHost      = 1024, 1025, 1037, 1007
)

// header is a header of RPM: the texts of tags, and integers as texts.
type header map[int]string

// readHeader reads a header, and returns what follows it.
func readHeader(t *testing.T, raw []byte) (h header, rest []byte) {
	t.Helper()
	if len(raw) < 16 || !bytes.Equal(raw[:4], []byte{0x8e, 0xad, 0xe8, 1}) {
		t.Fatal("no header of RPM")
	}
	count, size := int(binary.BigEndian.Uint32(raw[8:])), int(binary.BigEndian.Uint32(raw[12:]))
	store := raw[16+16*count:]
	h = header{}
	for i := range count {
		entry := raw[16+16*i:]
		tag, kind, offset, n := int(binary.BigEndian.Uint32(entry)), binary.BigEndian.Uint32(entry[4:]), int(binary.BigEndian.Uint32(entry[8:])), int(binary.BigEndian.Uint32(entry[12:]))
		switch kind {
		case 4: // integers of 32 bits
			var values []string
			for j := range n {
				values = append(values, fmt.Sprint(binary.BigEndian.Uint32(store[offset+4*j:])))
			}
			h[tag] = strings.Join(values, " ")
		case 6, 9: // a text, and a translated one
			text, _, _ := bytes.Cut(store[offset:], []byte{0})
			h[tag] = string(text)
		}
	}
	return h, store[size:]
}

// readRPM returns the header and the files of an RPM package, by path with their modes.
func readRPM(t *testing.T, raw []byte) (h header, files map[string]string) {
	t.Helper()
	const lead = 96
	if len(raw) < lead || !bytes.Equal(raw[:4], []byte{0xed, 0xab, 0xee, 0xdb}) {
		t.Fatal("no RPM")
	}
	_, rest := readHeader(t, raw[lead:]) // checksums
	if padding := (len(raw) - len(rest)) % 8; padding != 0 {
		rest = rest[8-padding:]
	}
	h, payload := readHeader(t, rest)
	zipped, err := gzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	r := cpio.NewReader(zipped)
	files = map[string]string{}
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return h, files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = fmt.Sprintf("%04o %s", f.Mode.Perm(), content)
	}
}
