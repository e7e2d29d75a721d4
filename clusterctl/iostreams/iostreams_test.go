package iostreams

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMessages(t *testing.T) {
	s, b := Test()
	s.Infof("a %d", 1)
	s.Logf(2, "hidden")
	s.Verbosity = 2
	s.Logf(2, "shown")
	s.Warnf("careful")
	s.errColor = true
	s.Noticef("news")
	want := "a 1\nshown\nWarning: careful\n\x1b[33mnews\x1b[0m\n"
	if diff := cmp.Diff(want, b.Err.String()); diff != "" || b.Out.Len() != 0 {
		t.Errorf("messages belong on Err: %q -want +got:\n%s", b.Out, diff)
	}
	s.Quiet = true
	s.Infof("hidden")
	s.Noticef("hidden")
	s.Warnf("shown")
	want += "\x1b[33mWarning:\x1b[0m shown\n"
	if diff := cmp.Diff(want, b.Err.String()); diff != "" {
		t.Errorf("only warnings are shown with --quiet: -want +got:\n%s", diff)
	}
	if w, columns := s.Progress(); w != io.Discard || columns != 0 {
		t.Error("no progress is shown with --quiet")
	}
	if s.ErrColumns() != 0 || s.ErrTerminal() || s.OutTerminal() {
		t.Error("buffers are no terminals")
	}
}

func TestDeliver(t *testing.T) {
	s, b := Test()
	file := filepath.Join(t.TempDir(), "f")
	for _, path := range []string{"", "-", file} {
		if err := s.Deliver(path, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file must be readable by its user alone: %v, %v", info.Mode(), err)
	}
	if b.Out.String() != "xx" {
		t.Errorf("got %q", b.Out)
	}
	if err := s.Deliver(filepath.Join(file, "g"), nil); err == nil {
		t.Error("a path that cannot be written must be an error")
	}
}

func TestNoColor(t *testing.T) {
	env := func(name string) (string, bool) { return "1", name == "NO_COLOR" }
	if s := System(env); s.OutColor() || s.errColor {
		t.Error("NO_COLOR must turn colors off")
	}
}
