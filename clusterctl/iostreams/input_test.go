package iostreams

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAsk(t *testing.T) {
	tests := []struct{ reason, answer, want string }{
		{"the word", "c@1\n", ""},
		{"the word at the end of the input", " c@1 ", ""},
		{"another one", "y\n", "nothing is changed"},
		{"no terminal", "", "nothing is changed: there is no answer; use --yes without a terminal"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			streams, buffers := Test()
			buffers.In.WriteString(tt.answer)
			err := streams.Ask("Really?", "c@1", "--yes")
			if (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if asked := buffers.Err.String(); asked != "Really?\nType c@1 to go on: " {
				t.Errorf("asked %q", asked)
			}
		})
	}
}

func TestInput(t *testing.T) {
	streams, buffers := Test()
	buffers.In.WriteString("standard")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"-": "standard", file: "a file"} {
		if got, err := streams.Input(name); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if _, err := streams.Input(file + "x"); err == nil {
		t.Error("a file that does not exist is an error")
	}
}
