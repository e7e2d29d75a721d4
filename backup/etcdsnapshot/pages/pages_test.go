package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// filled returns a database with enough keys for a page that refers to others.
func filled(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true}) // as etcd
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("key"))
		for i := 0; err == nil && i < 300; i++ {
			err = bucket.Put(fmt.Appendf(nil, "%08d", i), bytes.Repeat([]byte("v"), 100))
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestDamagedPages damages a page that refers to others, in ways in which bbolt would read forever, or outside of the file.
func TestDamagedPages(t *testing.T) {
	db := filled(t)
	order, size := binary.NativeEndian, int(binary.NativeEndian.Uint32(db[headerSize+8:]))
	if err := Check(t.Context(), bytes.NewReader(db), int64(len(db))); err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for id := 2; id < len(db)/size; id++ {
		if page := db[id*size:]; order.Uint64(page) != uint64(id) || order.Uint16(page[8:]) != branchPage {
			continue
		}
		for _, test := range []struct {
			reason string
			do     func(page []byte)
		}{
			{"it refers to itself", func(page []byte) { order.PutUint64(page[headerSize+8:], uint64(id)) }},
			{"it refers to a page twice", func(page []byte) { copy(page[headerSize+elementSize+8:][:8], page[headerSize+8:]) }},
			{"it refers to a page after the end", func(page []byte) { order.PutUint64(page[headerSize+8:], 1<<40) }},
			{"it refers to no page", func(page []byte) { order.PutUint16(page[10:], 0) }},
			{"it has more entries than fit", func(page []byte) { order.PutUint16(page[10:], 60000) }},
			{"a key is after its end", func(page []byte) { order.PutUint32(page[headerSize:], 1<<31) }},
			{"it is another page", func(page []byte) { order.PutUint64(page, uint64(id)+1) }},
			{"it continues after the end", func(page []byte) { order.PutUint32(page[12:], 1<<31) }},
			{"it is of no kind", func(page []byte) { order.PutUint16(page[8:], 0x20) }},
		} {
			content := bytes.Clone(db)
			test.do(content[id*size:])
			if err := Check(t.Context(), bytes.NewReader(content), int64(len(content))); errors.Is(err, ErrDamaged) {
				damaged++
			} else {
				t.Logf("page %d: %s: %v; it may be an old page", id, test.reason, err)
			}
		}
	}
	if damaged != 9 {
		t.Errorf("%d of 9 damages were found", damaged)
	}
}
