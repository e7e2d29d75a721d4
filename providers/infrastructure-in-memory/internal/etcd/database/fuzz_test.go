package database

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead reads databases that anybody may have written: it returns, and what it reads is consistent.
func FuzzRead(f *testing.F) {
	s := newStore(f)
	create(f, s, configMap("").Resource, "v1", "ConfigMap", "n", "a")
	remove(f, s, configMap("a"))
	db, _ := parts(f, s, 10)
	f.Add(db)
	f.Add(db[:2*4096])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		read, _, err := Read(file)
		if err != nil {
			return
		}
		for _, o := range read.Objects {
			if o.Key.Name == "" || o.Key.Resource.Resource == "" || !bytes.HasPrefix(o.JSON, []byte("{")) {
				t.Errorf("read %+v", o)
			}
		}
	})
}
