package iostreams

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
)

const hostile = "evil \x1b[2J\x1b]0;PWNED\a\x1b[31m\r\x9b5m\u009b1m\b\x00\x7f\u202edesrever\u2066\n\ttab é日本"

func TestClean(t *testing.T) {
	want := `evil ^[[2J^[]0;PWNED^G^[[31m\r\x9b5m\u009b1m^H^@\u007f\u202edesrever\u2066` + "\n\ttab é日本"
	if got := Clean(hostile); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := CleanColored("\x1b[32mTrue\x1b[0m\x1b[2J"); got != "\x1b[32mTrue\x1b[0m^[[2J" {
		t.Errorf("colors: %q", got)
	}
}

// Every way to print something passes the same place.
func TestEverythingIsClean(t *testing.T) {
	for _, color := range []bool{false, true} {
		s, b := Test()
		s.SetOutColor(color)
		s.errColor, s.Verbosity = color, 9
		s.Infof("%s", hostile)
		s.Logf(1, "%s", hostile)
		s.Warnf("%v", errors.New(hostile))
		s.Noticef("%s", hostile)
		s.Lines("name"+hostile)("name"+hostile, hostile)
		fmt.Fprint(s.Err, hostile)
		fmt.Fprint(s.Out, hostile)
		for name, text := range map[string]string{"Out": b.Out.String(), "Err": b.Err.String()} {
			for _, own := range []string{"\x1b[33m", "\x1b[0m"} {
				text = strings.ReplaceAll(text, own, "")
			}
			if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' || r == 0x202e }); i >= 0 || strings.Contains(text, "\x9b") {
				t.Errorf("%s with color %t has control characters: %q", name, color, text)
			}
		}
	}
}

// Documents stay as they are, unless they go to a terminal.
func TestDocuments(t *testing.T) {
	s, b := Test()
	if err := s.Deliver("", []byte(hostile)); err != nil || b.Out.String() != hostile {
		t.Errorf("a document becomes %q, %v", b.Out, err)
	}
	b.Out.Reset()
	s.outTerminal = true
	if err := s.Deliver("", []byte(hostile)); err != nil || b.Out.String() != Clean(hostile) {
		t.Errorf("on a terminal it is %q, %v", b.Out, err)
	}
}

// Nothing that is printed has a control character of a terminal, and cleaning it again changes nothing.
func FuzzClean(f *testing.F) {
	for _, text := range []string{"", "plain\n", hostile, "\x1b[0m\x1b[", "é\xc2", "\xc2\x9b", "\x1b\x1b[31m[2J"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean := Clean(text)
		if Clean(clean) != clean || strings.ContainsAny(clean, "\x1b\r\a\u009b\u202e") {
			t.Errorf("%q becomes %q", text, clean)
		}
		if colored := CleanColored(text); strings.Contains(colors.ReplaceAllString(colored, ""), "\x1b[2J") && !strings.Contains(text, "m") {
			t.Errorf("%q becomes %q", text, colored)
		}
	})
}
