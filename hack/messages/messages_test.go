package messages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCollect(t *testing.T) {
	for _, tt := range []struct {
		reason string
		body   string
		want   []Message
	}{
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
			body:   `func f() error { refuse := func(why string) error { return errors.New("no: " + why) }; return refuse("closed") }`,
			want:   []Message{{kindError, "closed"}, {kindError, "no: …"}},
		},
		{
			reason: "formats without words, and texts that are written to buffers, are ignored",
			body:   `func f(b *strings.Builder) error { fmt.Fprintf(b, "inside"); fmt.Print("\x1b[2K"); return fmt.Errorf("%w: %s", nil, "x") }`,
		},
	} {
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
