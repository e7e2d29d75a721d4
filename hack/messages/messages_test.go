package messages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// collected is a case of TestCollect: the body of a package, and its messages.
type collected struct {
	reason string
	body   string
	want   []Message
}

func TestCollect(t *testing.T) {
	runCollected(t, []collected{
		{
			reason: "constant formats, with the kind of the function",
			body:   `func f() error { fmt.Println("all is well"); return fmt.Errorf("cannot read %s", "x") }`,
			want:   []Message{{kindError, "cannot read %s"}, {kindPrint, "all is well"}},
		},
		{
			reason: "functions that pass a parameter on, also through another function",
			body: `func note(format string, args ...any) { fmt.Printf(format+"\n", args...) }
				func warn(n int, format string, args ...any) { note("%s %s", "Warning:", fmt.Sprintf(format, args...)) }
				func f() { warn(1, "disk %s is full", "x") }`,
			want: []Message{{kindPrint, "disk %s is full"}},
		},
		{
			reason: "every value of a variable, a field and a result",
			body: `type s struct{ why string }
				func reason(b bool) string { if b { return "too old" }; return "too new" }
				func f(b bool) (error, error, error) {
					text := "a first"
					if b { text = "a second" }
					x := s{why: "no space"}
					return errors.New(text), errors.New(x.why), fmt.Errorf("it is " + reason(b))
				}`,
			want: []Message{{kindError, "a first"}, {kindError, "a second"}, {kindError, "it is too new"}, {kindError, "it is too old"}, {kindError, "no space"}},
		},
		{
			reason: "results of Error methods",
			body:   `type e struct{ n int }; func (e e) Error() string { return fmt.Sprintf("%d left", e.n) }`,
			want:   []Message{{kindError, "%d left"}},
		},
		{
			reason: "functions in variables",
			body:   `func f() error { refuse := func(why string) error { return errors.New("no: " + why) }; return refuse("it is closed") }`,
			want:   []Message{{kindError, "it is closed"}, {kindError, "no: …"}},
		},
	})
}

// TestCollectIndirectly has messages that reach their use in other ways than as parameters and variables.
func TestCollectIndirectly(t *testing.T) {
	runCollected(t, []collected{
		{
			reason: "results after the first one, and named results",
			body: `func why() (bool, string) { return true, "out of memory" }
				func how() (text string, ok bool) { text = "by hand"; return }
				func f() (error, error) { _, a := why(); b, _ := how(); return errors.New(a), errors.New(b) }`,
			want: []Message{{kindError, "by hand"}, {kindError, "out of memory"}},
		},
		{
			reason: "named string types, whose methods pass the receiver on",
			body: `type stale string
				func (s stale) err() error { return fmt.Errorf("the cache lacks %s", string(s)) }
				func check(n int) stale { if n > 1 { return "both of them" }; return stale("the object " + fmt.Sprint(n)) }
				func f() error { if s := check(1); s != "" { return s.err() }; return stale("a new one").err() }`,
			want: []Message{{kindError, "a new one"}, {kindError, "both of them"}, {kindError, "the cache lacks %s"}, {kindError, "the object …"}},
		},
		{
			reason: "lists, loops over them, and joined lists",
			body: `func f(b bool) (error, error) {
					reasons := []string{"no Node"}
					if b { reasons = append(reasons, "no Pod") }
					for _, r := range map[int]string{1: "one text"} { reasons = append(reasons, r) }
					return errors.New(strings.Join(reasons, "; ")), nil
				}`,
			want: []Message{{kindError, "no Node"}, {kindError, "no Pod"}, {kindError, "one text"}},
		},
		{
			reason: "texts inserted into a message, but not names",
			body: `type cause struct{ kind, text string }
				func (c cause) String() string { return c.text }
				func f(b bool) error {
					name := "x"
					return fmt.Errorf("%s: %s, %s", name, "not a name", cause{"memory", "out of memory"})
				}`,
			want: []Message{{kindError, "not a name"}, {kindError, "out of memory"}},
		},
		{
			reason: "constructors that store a parameter in a field, with and without its name",
			body: `type wait struct{ kind, state string }
				func because(state string) wait { return wait{"some kind", state} }
				func f() error { w := because("on hold"); return errors.New(w.kind + w.state) }`,
			want: []Message{{kindError, "on hold"}, {kindError, "some kind…"}},
		},
		{
			reason: "variables that are set by address",
			body: `func set(to *string) { *to = "set elsewhere" }
				func f() error { var text string; set(&text); return errors.New(text) }`,
			want: []Message{{kindError, "set elsewhere"}},
		},
		{
			reason: "buffers whose content is a message",
			body:   `func f() error { var b strings.Builder; b.WriteString("first part"); fmt.Fprintf(&b, ", %d more", 2); return errors.New(b.String()) }`,
			want:   []Message{{kindError, ", %d more"}, {kindError, "first part"}},
		},
		{
			reason: "parts of a message are not repeated",
			body:   `func why() string { return "it is old" }; func f() error { return errors.New("rejected: " + why()) }`,
			want:   []Message{{kindError, "rejected: it is old"}},
		},
		{
			reason: "formats without words, and texts that are written to buffers, are ignored",
			body:   `func f(b *strings.Builder) error { fmt.Fprintf(b, "inside"); fmt.Print("\x1b[2K"); return fmt.Errorf("%w: %s", nil, "x") }`,
		},
	})
}

func runCollected(t *testing.T, cases []collected) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.reason, func(t *testing.T) {
			dir := t.TempDir()
			source := "package p\nimport (\"errors\"; \"fmt\"; \"strings\")\nvar _ = errors.New\nvar _ = fmt.Sprint\nvar _ strings.Builder\n" + tt.body
			for name, content := range map[string]string{"go.mod": "module p\n\ngo 1.26.0\n", "p.go": source} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			pkgs, err := check(dir, ".")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, Collect(pkgs)["p"], equateEmpty); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// equateEmpty treats no messages and an empty list of them alike.
var equateEmpty = cmp.FilterValues(func(a, b []Message) bool { return len(a) == 0 && len(b) == 0 }, cmp.Comparer(func(_, _ []Message) bool { return true }))

func TestRender(t *testing.T) {
	got := string(render(prefix+"clusterctl/x", []Message{{kindError, "cannot read %s"}, {kindHelp, "First.\n\nSecond.\n"}}))
	want := "\nclusterctl/x\n  error     cannot read %s\n  help      First.\n\n            Second.\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
