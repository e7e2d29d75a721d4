package book

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBroken(t *testing.T) {
	p := page{name: "doc.go", text: "# One `two`, three\n[a](doc.go) [b](#one-two-three) [c](https://example.org/x)\n[d](none.md) [e](#four) [f](page.go#no-heading)\n"}
	want := []string{
		"doc.go: none.md: no such file", "doc.go: #four: no such heading", "doc.go: page.go#no-heading: no such heading",
	}
	if diff := cmp.Diff(want, p.broken(".")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		pages, err := read(root, pattern)
		if err != nil {
			t.Error(err)
		}
		for _, p := range pages {
			for _, link := range p.broken(root) {
				t.Error(link)
			}
		}
	}
}
