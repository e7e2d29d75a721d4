package tree

import (
	"strings"
	"testing"
)

func TestOneLine(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, tc := range []struct{ reason, message, want string }{
		{"a short message", "short", "short"},
		{"as long as it may be", long[:100], long[:100]},
		{"a long one", long, long[:100] + " ..."},
		{"characters, not bytes", strings.Repeat("ü", 101), strings.Repeat("ü", 100) + " ..."},
		{"the extension that holds a Cluster is kept", `hook "BeforeClusterDelete" is blocking: ` + long + " (extension wait.backup)",
			`hook "BeforeClusterDelete" is blocking: ` + long[:36] + " ... (extension wait.backup)"},
		{"not if there are too many", long + " (extension " + long + ")", long[:100] + " ..."},
		{"only at the end", long + " (extension a.b) " + long, long[:100] + " ..."},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := oneLine(tc.message); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
