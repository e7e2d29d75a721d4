package manual

import (
	"bytes"
	"testing"

	"github.com/dop251/goja"
	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/docs/book"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// searcher returns the search of a site: its own script and index, in an interpreter.
func searcher(t *testing.T, site Site) func(query string) [][]string {
	t.Helper()
	vm := goja.New()
	for _, name := range []string{"manual.js", "search.js"} {
		if _, err := vm.RunScript(name, string(site[name])); err != nil {
			t.Fatal(err)
		}
	}
	return func(query string) [][]string {
		t.Helper()
		if err := vm.Set("query", query); err != nil {
			t.Fatal(err)
		}
		result, err := vm.RunString("rank(manualIndex, query)")
		if err != nil {
			t.Fatal(err)
		}
		var sections [][]string
		if err := vm.ExportTo(result, &sections); err != nil {
			t.Fatal(err)
		}
		return sections
	}
}

// TestSearch finds words of the book. Each query has the section that must come first.
func TestSearch(t *testing.T) {
	search := searcher(t, built(t))
	for _, tc := range []struct{ reason, query, want string }{
		{"a title", "autoscaling", "autoscaler.html"},
		{"a title of several words", "lifecycle hooks", "lifecycle-hooks.html"},
		{"a word of the first heading that the contents do not have", "kubeadm overrides gaps", "repositories.html"},
		{"the start of a word, while it is typed", "troublesh", "troubleshooting.html"},
		{"a singular for a plural", "certificate", "certificates.html"},
		{"a plural for a singular", "moves", "move.html"},
		{"upper and lower case", "MACHINEPOOLS", "machinepools.html"},
		{"a name in camel case, by its parts", "machine pool", "machinepools.html"},
		{"a heading", "authentication and authorization", "standalone.html#authentication-and-authorization"},
		{"a flag in a heading or a text", "--encryption-keys", "standalone.html#secrets-are-encrypted"},
		{"a question", "how do I upgrade providers?", "upgrade.html"},
		{"a word in one text alone", "corefile", "fuzzing.html"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			found := search(tc.query)
			if len(found) == 0 || found[0][2] != tc.want {
				t.Errorf("%q: want %s first, got %q", tc.query, tc.want, links3(found))
			}
		})
	}
	for _, query := range []string{"", " -- ", "qxzqxz", "how is the"} {
		if found := search(query); len(found) > 0 {
			t.Errorf("%q: want nothing, got %q", query, links3(found))
		}
	}
}

// links3 returns the links of the first three results.
func links3(found [][]string) []string {
	var links []string
	for _, section := range found[:min(3, len(found))] {
		links = append(links, section[2])
	}
	return links
}

// TestRank checks the order of results: title, heading, text, and more words before fewer.
func TestRank(t *testing.T) {
	e := func(file string, level int, page, heading, text string) entry {
		return entry{file: file, page: page, section: section{level: level, id: "x", heading: heading, text: text}}
	}
	raw, err := indexed([]entry{
		e("text.html", 2, "One", "Other", "quorum quorum quorum quorum and snow"),
		e("heading.html", 2, "One", "About quorums", "rain"),
		e("start.html", 2, "One", "Quorumlike", "rain"),
		e("title.html", 1, "Quorum", "Quorum", "rain"),
		e("page.html", 2, "Quorum", "Other", "nothing"),
		e("rare.html", 2, "One", "Other", "rain and quorum"),
	}).script()
	if err != nil {
		t.Fatal(err)
	}
	search := searcher(t, Site{"manual.js": built(t)["manual.js"], "search.js": raw})
	for _, tc := range []struct {
		reason, query string
		want          []string
	}{
		{"title, heading, start of a heading, text", "quorum", []string{"title.html", "heading.html#x", "start.html#x", "text.html#x", "rare.html#x"}},
		{"more words come first, whatever their weight", "quorum snow", []string{"text.html#x", "title.html", "heading.html#x", "start.html#x", "rare.html#x"}},
		{"a word twice is one word", "snow snow", []string{"text.html#x"}},
		{"names of JavaScript are words", "constructor __proto__ toString", nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var got []string
			for _, section := range search(tc.query) {
				got = append(got, section[2])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTerms(t *testing.T) {
	for text, want := range map[string][]string{
		"Drain the Nodes":         {"drain", "the", "node"},
		"`--dry-run` x":           {"dry", "run", "x"},
		"KubeadmControlPlane":     {"kubeadmcontrolplane", "kubeadm", "control", "plane"},
		"status of classes":       {"statu", "of", "classe"},
		"etcd v1beta2 as a class": {"etcd", "v1beta2", "v", "1", "beta", "2", "as", "a", "class"},
		"API":                     {"api"},
		"naïve":                   {"na", "ve"},
	} {
		if diff := cmp.Diff(want, terms(text)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
}

// TestScriptIsSafe checks that no text of a page can end the script that the index is.
func TestScriptIsSafe(t *testing.T) {
	raw, err := indexed([]entry{{section: section{text: "</script><!-- \u2028"}}}).script()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(raw, "<>\u2028") {
		t.Errorf("the index has what a page could interpret: %s", raw)
	}
}

func TestStart(t *testing.T) {
	long := string(bytes.Repeat([]byte("wörter "), 100))
	if got := start(long); len(got) > excerpt+4 || got[len(got)-len("wörter …"):] != "wörter …" {
		t.Errorf("got %q", got)
	}
	if got := start("short"); got != "short" {
		t.Errorf("got %q", got)
	}
}

// The index of the book is the same in each run, so that releases can be reproduced.
func TestReproducible(t *testing.T) {
	if diff := cmp.Diff(built(t), built(t)); diff != "" {
		t.Error("two sites of the same book differ")
	}
	other, err := build(book.Files(), nil, version.Info{})
	if err == nil {
		t.Errorf("a book without chapters has links to pages that it does not have, got %d files", len(other))
	}
}
