package condition

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clean makes text harmless for terminals: of control characters only line breaks and tabs stay, others are shown, as kubectl does it.
// So are those that change the order of what is next to them.
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

// written returns text as it can be stored in an object: Clean, and valid UTF-8, which the API server would enforce.
func written(text string) string { return Clean(strings.ToValidUTF8(text, "")) }
