package book

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestMissing(t *testing.T) {
	known, err := list(fstest.MapFS{
		"sdk/step/runner.go": {}, "sdk/step/commit.go": {}, "providers/core/internal/machine/node.go": {}, "providers/core/config/rbac/role.yaml": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		reason string
		text   string
		want   []string
	}{
		{reason: "files, folders, exported names and lines", text: "`sdk/step/runner.go`, `sdk/step/`, `sdk/step.Runner.Run()`, `sdk/step/commit.go:12`"},
		{reason: "globs, alternatives, placeholders, and an open end", text: "`providers/*/config/rbac`, `sdk/step/{runner,commit}.go`, `providers/<component>/internal`, `sdk/...`"},
		{reason: "paths below a folder that the text is about", text: "`internal/machine`, `machine/node.go`"},
		{reason: "what is no path of the repository", text: "`cluster.x-k8s.io/paused`, `and/or`, `/etc/kubernetes/x.go`, `./x.go`, `bin/capi`, `a b/internal/x`, `https://x/internal/y`"},
		{reason: "blocks are not prose", text: "```text\n`sdk/none`\n```\n"},
		{
			reason: "paths that do not exist",
			text:   "`sdk/none`, `sdk/step/none.go`, `sdk/step/{runner,none}.go`, `providers/*/none`, `internal/none`, `machine/none.go`",
			want:   []string{"sdk/none", "sdk/step/none.go", "sdk/step/{runner,none}.go", "providers/*/none", "internal/none", "machine/none.go"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			blocks, err := parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, name := range tt.want {
				want = append(want, "a.md: `"+name+"` does not exist")
			}
			if diff := cmp.Diff(want, known.missing(page{name: "a.md", text: tt.text, blocks: blocks})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMissingInTree(t *testing.T) {
	known, err := list(fstest.MapFS{
		"core/internal/a/x.go": {}, "core/internal/b/c/x.go": {}, "core/internal/b/d.go": {}, "core/internal/b/e.go": {}, "sdk/x.go": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	drawing := `core/                 the core, which has none/none
  internal/a, b         two folders
    c                     below b, not a
  internal/b            one
    c                     below
                          it: none/none
    d/e                   (files) two of them
    none                  is missing
  internal/a, none      and one that is missing
sdk                   the library
gone/                 is missing
`
	want := []string{
		"the tree has core/internal/a/c, which does not exist", "the tree has core/internal/b/none, which does not exist",
		"the tree has core/internal/none, which does not exist", "the tree has gone, which does not exist",
	}
	if diff := cmp.Diff(want, known.missingInTree(drawing)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPaths checks the paths that pages name.
func TestPaths(t *testing.T) {
	root := filepath.Join("..", "..")
	known, err := listRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "*/README.md"} {
		pages, err := read(root, pattern)
		if err != nil {
			t.Error(err)
		}
		for _, p := range pages {
			for _, problem := range known.missing(p) {
				t.Error(problem)
			}
			if p.name != filepath.Join("docs", "layout.md") {
				continue
			}
			tree := p.blocks[1]
			if !strings.HasPrefix(tree.code, "api/") {
				t.Fatalf("%s:%d: the second block is not the tree", p.name, tree.line)
			}
			for _, problem := range known.missingInTree(tree.code) {
				t.Error(problem)
			}
		}
	}
}
