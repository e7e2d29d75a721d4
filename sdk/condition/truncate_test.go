package condition

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		reason string
		text   string
		limit  int
		want   string
	}{
		{reason: "a text that fits is kept", text: "abcdef", limit: 6, want: "abcdef"},
		{reason: "a longer one is as long as the limit", text: "abcdefg", limit: 6, want: "abc..."},
		{reason: "characters are not split", text: "abü1234", limit: 6, want: "ab..."},
		{reason: "invalid bytes are removed, since messages are JSON", text: "a\xffb", limit: 6, want: "ab"},
		{reason: "no text", limit: 6},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if got := Truncate(tt.text, tt.limit); got != tt.want {
				t.Errorf("Truncate(%q, %d) = %q, want %q", tt.text, tt.limit, got, tt.want)
			}
		})
	}
	if got := Brief(strings.Repeat("ü", BriefLength)); len(got) > BriefLength || !utf8.ValidString(got) {
		t.Errorf("Brief returns %d bytes, want at most %d: %q", len(got), BriefLength, got)
	}
}
