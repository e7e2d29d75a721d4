package book

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	files := fstest.MapFS{"a.md": {}, "b.md": {}, "c.md": {}}
	for _, tc := range []struct {
		reason, index, err string
		want               []Chapter
	}{
		{
			reason: "chapters have pages; headings without pages are none",
			index:  "# B\n\n## One\n\n| page | |\n|---|---|\n| [A](a.md) | the `first` |\n| [B b](b.md) | second |\n\n## No pages\n\ntext\n\n## Two\n| [C](c.md) | third |\n",
			want: []Chapter{
				{Title: "One", Pages: []Page{{File: "a.md", Title: "A", Summary: "the `first`"}, {File: "b.md", Title: "B b", Summary: "second"}}},
				{Title: "Two", Pages: []Page{{File: "c.md", Title: "C", Summary: "third"}}},
			},
		},
		{reason: "links in prose are no rows", index: "## One\nSee [A](a.md).\n| [X](../x.md) | elsewhere |\n"},
		{reason: "a page belongs to a chapter", index: "| [A](a.md) | x |\n", err: "README.md: a.md is in no chapter: put its row below a heading of the second level"},
		{reason: "a page has one place", index: "## One\n| [A](a.md) | x |\n## Two\n| [A](a.md) | x |\n", err: "README.md: a.md is listed twice"},
		{reason: "a page exists", index: "## One\n| [X](x.md) | x |\n", err: "README.md: x.md: open x.md: file does not exist"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := parse(tc.index, files)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tc.err {
				t.Errorf("got error %q, want %q", text, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestEveryPageIsListed checks the table of contents against the files.
func TestEveryPageIsListed(t *testing.T) {
	chapters, err := Contents()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{Index: true}
	for _, chapter := range chapters {
		for _, page := range chapter.Pages {
			listed[page.File] = true
		}
	}
	names, err := fs.Glob(Files(), "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !listed[name] {
			t.Errorf("%s is not in the table of contents: add a row to a chapter of %s", name, Index)
		}
	}
}
