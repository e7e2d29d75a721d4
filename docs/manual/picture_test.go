package manual

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/cluster-api/docs/book"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// TestPicture checks that pictures become parts of pages, and that mistakes are errors.
func TestPicture(t *testing.T) {
	const drawn = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\">\n<style>\n.x { fill: red; }\n</style>\n<rect/></svg>\n"
	for _, tc := range []struct{ reason, page, want, problem string }{
		{
			reason: "a picture has no style of its own", page: "![what it shows](pictures/x.svg)",
			want: "<p><span class=\"figure\" tabindex=\"0\"><svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\">\n<rect/></svg></span></p>",
		},
		{
			reason: "a picture that is missing", page: "![x](pictures/y.svg)",
			problem: "a.md: the picture pictures/y.svg does not exist",
		},
		{
			reason: "another kind of file", page: "![x](pictures/x.png)",
			problem: "a.md: the picture pictures/x.png is not an SVG file in pictures/",
		},
		{
			reason: "a picture of another site", page: "![x](https://example.com/x.svg)",
			problem: "a.md: the picture https://example.com/x.svg is not an SVG file in pictures/",
		},
		{
			reason: "a picture outside of the folder", page: "![x](pictures/../x.svg)",
			problem: "a.md: the picture pictures/../x.svg is not an SVG file in pictures/",
		},
		{
			reason: "a picture without a text", page: "![](pictures/x.svg)",
			problem: "a.md: the picture pictures/x.svg has no text between its brackets, which says what it shows",
		},
		{
			reason: "a picture in a sentence", page: "see ![x](pictures/x.svg)",
			problem: "a.md: the picture pictures/x.svg is not in a paragraph of its own",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			site, err := build(fstest.MapFS{
				"README.md": {Data: []byte("# Home")}, "a.md": {Data: []byte("# A\n\n" + tc.page + "\n")}, "pictures/x.svg": {Data: []byte(drawn)},
			}, []book.Chapter{{Title: "One", Pages: []book.Page{{File: "a.md", Title: "A"}}}}, version.Info{})
			switch {
			case tc.problem != "":
				if err == nil || err.Error() != tc.problem {
					t.Errorf("got %v, want %s", err, tc.problem)
				}
			case err != nil:
				t.Error(err)
			case !strings.Contains(string(site["a.html"]), tc.want):
				t.Errorf("%s is not in the page:\n%s", tc.want, site["a.html"])
			}
		})
	}
}

// TestPicturesAreShown checks that each picture is on a page, and loads nothing.
func TestPicturesAreShown(t *testing.T) {
	files, err := fs.Glob(book.Files(), "pictures/*.svg")
	if err != nil || len(files) == 0 {
		t.Fatalf("the book has %d pictures: %v", len(files), err)
	}
	pages, err := fs.Glob(book.Files(), "*.md")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, page := range pages {
		source, err := fs.ReadFile(book.Files(), page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(source)
	}
	for _, file := range files {
		if !strings.Contains(text.String(), "]("+file+")") {
			t.Errorf("no page shows %s", file)
		}
		drawn, err := fs.ReadFile(book.Files(), file)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"<script", "<image", "<foreignObject", "@import", "url(", `href="h`, "@font-face", " style=", " on"} {
			if strings.Contains(tags(string(drawn)), bad) {
				t.Errorf("%s has %s", file, bad)
			}
		}
	}
}

// tags returns the tags of a picture, without its texts.
func tags(drawn string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(drawn, "<") {
		tag, _, _ := strings.Cut(part, ">")
		out.WriteString("<" + tag)
	}
	return out.String()
}
