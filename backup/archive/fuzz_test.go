package archive

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
)

// FuzzReader reads what is no archive, at each layer: as the file, as what is encrypted, and as what is compressed and encrypted. What is
// read to its end without an error has the same entries when it is written again; every error is one of the documented ones, is short,
// and quotes no content.
func FuzzReader(f *testing.F) {
	key, err := age.ParseX25519Identity("AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX")
	if err != nil {
		f.Fatal(err)
	}
	small := []entry{{"etcd/snapshot.db", strings.Repeat("page", 1000)}, {"empty", ""}}
	content := packed(f, file("a", "secret"), file(sums, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n"))
	f.Add(0, written(f, small, key.Recipient()))
	f.Add(0, []byte(intro+"-> X25519 x\n\n--- x\n"))
	f.Add(1, compressed(f, content))
	f.Add(2, content)
	f.Add(2, packed(f, tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc/passwd"}))
	f.Add(2, packed(f, file("../a", "secret")))
	f.Fuzz(func(t *testing.T, layer int, data []byte) {
		switch layer {
		case 0:
		case 1:
			data = sealed(t, data, key.Recipient())
		default:
			data = sealed(t, compressed(t, data), key.Recipient())
		}
		got, err := read(bytes.NewReader(data), key)
		if err != nil {
			if kindOf(err) == "" || len(err.Error()) > 500 || strings.Contains(err.Error(), "secret") {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		again, err := read(bytes.NewReader(written(t, got, key.Recipient())), key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Error(diff)
		}
	})
}
