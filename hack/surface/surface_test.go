package surface_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/hack/surface"
)

func TestList(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n",
		"a/a.go": `package a

import "time"

const Limit = 3

var unexported int

type Box[T any] struct {
	Value T
	hidden int
}

func (b *Box[T]) Put(v T) error { return nil }

type Reader interface{ Read(at time.Time) string }

type Name string

func New(names ...Name) *Box[Name] { return nil }
`,
		"a/internal/b/b.go": "package b\n\nfunc Hidden() {}\n",
		"cmd/main.go":       "package main\n\nfunc main() {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := surface.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = `# What this module exports. Written by make generate; README.md says what may change.
a: Box.Put(v T) error
a: Box.Value T
a: const Limit untyped int
a: func New(names ...Name) *Box[Name]
a: type Box[T any] struct
a: type Name string
a: type Reader interface{Read(at time.Time) string}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, want := range []bool{true, false} {
		if changed, err := surface.Write(dir); err != nil || changed != want {
			t.Errorf("written: %t, want %t, error %v", changed, want, err)
		}
	}
}
