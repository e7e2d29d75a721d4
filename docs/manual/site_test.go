package manual

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"sigs.k8s.io/cluster-api/docs/book"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// built returns the site of the book.
func built(t *testing.T) Site {
	t.Helper()
	site, err := New(version.Info{GitVersion: "v2.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// visit calls a function for each element of a page.
func visit(t *testing.T, page []byte, do func(*html.Node)) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			do(n)
		}
	}
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// ids returns the IDs of each page.
func ids(t *testing.T, site Site) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for name, content := range site {
		if filepath.Ext(name) != ".html" {
			continue
		}
		all[name] = map[string]bool{}
		visit(t, content, func(n *html.Node) {
			if id, ok := attribute(n, "id"); ok {
				if all[name][id] {
					t.Errorf("%s: two elements have the ID %s", name, id)
				}
				all[name][id] = true
			}
		})
	}
	return all
}

// TestLinks follows every link of the site. Those to the repository lead to files that exist.
func TestLinks(t *testing.T) {
	site := built(t)
	anchors := ids(t, site)
	for name := range anchors {
		visit(t, site[name], func(n *html.Node) {
			href, ok := attribute(n, "href")
			if !ok || n.Data != "a" {
				return
			}
			to, err := url.Parse(href)
			if err != nil {
				t.Errorf("%s: %s: %v", name, href, err)
				return
			}
			if file, ok := strings.CutPrefix(to.Path, "/kubernetes-sigs/cluster-api/blob/v2.0.0/"); ok && to.Host == "github.com" {
				if _, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(file))); err != nil {
					t.Errorf("%s: %s: %v", name, href, err)
				}
				return
			}
			switch target := anchors[or(to.Path, name)]; {
			case to.Scheme != "":
			case target == nil:
				t.Errorf("%s: %s leads to no page", name, href)
			case to.Fragment != "" && !target[to.Fragment]:
				t.Errorf("%s: %s leads to no heading", name, href)
			}
		})
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// TestNothingExternal checks that pages load only files of the site, and nothing that the content security policy forbids.
func TestNothingExternal(t *testing.T) {
	site := built(t)
	for name := range ids(t, site) {
		visit(t, site[name], func(n *html.Node) {
			loaded, ok := attribute(n, "src")
			if href, linked := attribute(n, "href"); linked && n.Data == "link" {
				loaded, ok = href, true
			}
			if ok && site[loaded] == nil {
				t.Errorf("%s: <%s> loads %s, which is no file of the site", name, n.Data, loaded)
			}
			for _, a := range n.Attr {
				if a.Key == "style" || strings.HasPrefix(a.Key, "on") || a.Key == "srcset" || a.Key == "action" {
					t.Errorf("%s: <%s> has the attribute %s", name, n.Data, a.Key)
				}
			}
			if n.Data == "script" && n.FirstChild != nil || n.Data == "style" || n.Data == "iframe" || n.Data == "base" {
				t.Errorf("%s: <%s> in the page", name, n.Data)
			}
		})
	}
	for _, name := range []string{"manual.css", "pictures.css", "manual.js"} {
		for _, text := range []string{"//cdn", "http:", "https:", "url(", "@import", "fetch(", "innerHTML", "eval("} {
			if strings.Contains(string(site[name]), text) {
				t.Errorf("%s has %s", name, text)
			}
		}
	}
}

// TestOrder reads the site from its first page to the last.
func TestOrder(t *testing.T) {
	site := built(t)
	chapters, err := book.Contents()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"index.html"}
	for _, chapter := range chapters {
		for _, page := range chapter.Pages {
			want = append(want, fileOf(page.File))
		}
	}
	var got []string
	for name := "index.html"; name != ""; {
		got = append(got, name)
		next := ""
		visit(t, site[name], func(n *html.Node) {
			if rel, _ := attribute(n, "rel"); rel == "next" {
				next, _ = attribute(n, "href")
			}
		})
		name = next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPage(t *testing.T) {
	site, err := build(fstest.MapFS{
		"README.md": {Data: []byte("# Home\n\n[a](a.md#two-three)")},
		"a.md": {Data: []byte("# A & `<page>`\n\n## `Two`, three\n\n## Two three\n\n[up](README.md) [out](../adr/0001-engine.md#x) [self](#two-three)\n" +
			"<!-- note -->\n\n|a|b|\n|-|-:|\n|1|2|\n\n```yaml\nkind: X # <y>\n```\n")},
	}, []book.Chapter{{Title: "One", Pages: []book.Page{{File: "a.md", Title: "A", Summary: "s"}}}}, version.Info{GitVersion: "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	page := string(site["a.html"])
	for reason, want := range map[string]string{
		"anchors are those of GitHub":            `<h2 id="two-three">`,
		"a second anchor is another one":         `<h2 id="two-three-1">`,
		"the title is escaped":                   `<title>A &amp; &lt;page&gt; · Cluster API v1.2.3</title>`,
		"links between pages":                    `<a href="index.html">up</a>`,
		"links to the repository at the version": `<a href="https://github.com/kubernetes-sigs/cluster-api/blob/v1.2.3/docs/adr/0001-engine.md#x" rel="noreferrer">out</a>`,
		"tables scroll":                          `<div class="table"><table>`,
		"cells are aligned without styles":       `<td align="right">2</td>`,
		"code has a mark, comments and keys":     `<pre data-mark="yaml" tabindex="0"><code><b>kind</b>: X <i># &lt;y&gt;</i>`,
		"the current page shows":                 `<a href="a.html" aria-current="page">A</a>`,
		"sections are in the table of contents":  `<li><a href="#two-three-1">Two three</a></li>`,
		"the previous page":                      `<a rel="prev" href="index.html">`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: %s is not in the page:\n%s", reason, want, page)
		}
	}
}

// TestGenerated checks that generated pages are part of the book, without a source.
func TestGenerated(t *testing.T) {
	files := fstest.MapFS{"README.md": {Data: []byte("# Home")}, "a.md": {Data: []byte("# A")}}
	chapters := []book.Chapter{{Title: "One", Pages: []book.Page{{File: "a.md", Title: "A"}}}, {Title: "Two"}}
	page := Generated{Page: book.Page{File: "g.md", Title: "G"}, Chapter: "One", Source: []byte("# G\n\n[a](a.md)")}
	site, err := build(files, chapters, version.Info{}, page)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(site["g.html"]); !strings.Contains(text, `<a href="a.html">a</a>`) || strings.Contains(text, "Source of this page") {
		t.Errorf("the page is\n%s", text)
	}
	if !strings.Contains(string(site["a.html"]), `<a rel="next" href="g.html">`) || len(chapters[0].Pages) != 1 {
		t.Error("the page is not the last one of its chapter, or the chapters of the caller have changed")
	}
	page.Chapter = "Three"
	if _, err := build(files, chapters, version.Info{}, page); err == nil || err.Error() != `g.md: the book has no chapter "Three"` {
		t.Errorf("got %v", err)
	}
}

func TestMistakes(t *testing.T) {
	for _, tc := range []struct{ reason, page, want string }{
		{"a page that does not exist", "# A\n[x](b.md)", "a.md: the link b.md leads to no page"},
		{"a file outside the repository", "# A\n[x](../../../x)", "a.md: the link ../../../x leaves the repository"},
		{"a page without title", "text", "a.md: the page does not start with a heading of the first level, which is its title"},
		{"HTML", "# A\nthe <name> of", "a.md: the page has HTML, <name>: put it between backticks"},
		{"a block of HTML", "# A\n\n<script>x</script>\n", "a.md: the page has HTML, <script>x</script>: put it between backticks"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := build(fstest.MapFS{"README.md": {Data: []byte("# Home")}, "a.md": {Data: []byte(tc.page)}},
				[]book.Chapter{{Title: "One", Pages: []book.Page{{File: "a.md", Title: "A"}}}}, version.Info{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestRevision(t *testing.T) {
	for _, tc := range []struct {
		reason string
		info   version.Info
		want   string
	}{
		{"a release is a tag", version.Info{GitVersion: "v2.0.0", GitCommit: "abc"}, "v2.0.0"},
		{"so is a candidate", version.Info{GitVersion: "v2.0.0-rc.1", GitCommit: "abc"}, "v2.0.0-rc.1"},
		{"a pseudo-version is a commit", version.Info{GitVersion: "v2.0.1-0.20261129234559-11d4abf00000", GitCommit: "abc"}, "abc"},
		{"changes are no tag", version.Info{GitVersion: "v2.0.0", GitCommit: "abc", GitTreeState: "dirty"}, "abc"},
		{"builds that know nothing", version.Info{GitVersion: "v0.0.0-devel"}, "main"},
	} {
		if got := revision(tc.info); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "docs")
	site := built(t)
	if err := site.Write(dir); err != nil {
		t.Fatal(err)
	}
	written := Site{}
	names, err := fs.Glob(os.DirFS(dir), "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if written[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(site, written); diff != "" {
		t.Error("the files differ from the site")
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(version.Info{GitVersion: "v2.0.0"}); err != nil {
			b.Fatal(err)
		}
	}
}
