package iostreams

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBoard(t *testing.T) {
	tests := map[string]struct {
		reason  string
		columns int
		want    string
	}{
		"Plain": {
			reason: "Every change is a line; a repeated state is not printed.",
			want:   "bb   starting\na    up now\na    up for good\n",
		},
		"Terminal": {
			reason: "Every name has its line from the start; changes redraw it in place; long lines are truncated.", columns: 12,
			want: "a    \nbb   \nccc  \n\x1b[2A\r\x1b[2Kbb   start…\x1b[2B\r\x1b[3A\r\x1b[2Ka    up now\x1b[3B\r\x1b[3A\r\x1b[2Ka    up fo…\x1b[3B\r",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			b := newBoard(&out, tc.columns, "a", "bb", "ccc")
			b.Set("bb", "starting")
			b.Set("bb", "starting")
			b.Set("a", "up\nnow")
			b.Set("a", "up for good")
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
