package iostreams

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Clean makes text harmless for terminals: of control characters only line breaks and tabs stay, others are shown, as kubectl does it.
// So are those that change the order of what is next to them. Texts of objects, releases and servers have been written by others:
// an escape sequence could clear the screen, rewrite what is above, or type into the shell.
func Clean(text string) string {
	if harmless(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1 && text[i] >= 0x80 && text[i] < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, text[i]) // A control character of a terminal that does not use UTF-8.
		case r == utf8.RuneError && size == 1:
			b.WriteByte(text[i])
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ' && r != '\n' && r != '\t':
			b.WriteString("^" + string('@'+r))
		case dangerous(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

func harmless(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// dangerous reports whether a character that is not ASCII, or DEL, controls the terminal or the order of text.
func dangerous(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 ||
		r == 0x200e || r == 0x200f || r == 0x2028 || r == 0x2029
}

// colors matches sequences that change colors, which are the only ones in trees.
var colors = regexp.MustCompile("\x1b\\[[0-9;]{0,8}m")

// CleanColored is Clean for text whose parts that others have written are clean already: sequences that change colors stay.
func CleanColored(text string) string {
	var b strings.Builder
	end := 0
	for _, at := range colors.FindAllStringIndex(text, -1) {
		b.WriteString(Clean(text[end:at[0]]) + text[at[0]:at[1]])
		end = at[1]
	}
	return b.String() + Clean(text[end:])
}

// cleaner is a writer through which everything passes that a command prints.
type cleaner struct {
	w     io.Writer
	clean func(string) string
}

// Write writes p without what terminals would interpret.
func (c *cleaner) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.w, c.clean(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
