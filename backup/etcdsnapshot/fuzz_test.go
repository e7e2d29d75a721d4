package etcdsnapshot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// FuzzInspect damages a database behind a hash that matches. Reading it ends without a panic, with one of the documented errors, or with
// what bbolt reads, too.
func FuzzInspect(f *testing.F) {
	path := filepath.Join(f.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{keyBucket, metaBucket, "lease"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		for i := range 300 { // More than a page.
			key := []byte("\x00\x00\x00\x00\x00\x00\x00\x00_\x00\x00\x00\x00\x00\x00\x00\x00")
			key[6], key[7] = byte(i>>8), byte(i)
			if err := tx.Bucket([]byte(keyBucket)).Put(key, append([]byte("\x0a\x01a\x2a\x28"), make([]byte, 40)...)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		f.Fatal(err)
	}
	db.Close()
	database, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte{}, uint32(len(database)))
	f.Add(uint32(4096*2+8), []byte{1}, uint32(len(database)))
	f.Add(uint32(4096*3+16), []byte("\xff\xff\xff\xff\xff"), uint32(len(database)))
	f.Add(uint32(0), []byte{}, uint32(4096*3))
	f.Fuzz(func(t *testing.T, offset uint32, patch []byte, size uint32) {
		content := bytes.Clone(database[:min(int(size), len(database))/alignment*alignment])
		if len(content) > 0 {
			copy(content[int(offset)%len(content):], patch)
		}
		info, err := Inspect(t.Context(), rehashed(t, content))
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrTruncated) {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		if info.Keys < 0 || info.Keys > 1000 || info.Size != int64(len(content))+hashSize {
			t.Fatalf("got %+v", info)
		}
	})
}
