package tree

import (
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
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

// Names and conditions are written by others: nothing of them reaches the terminal as a control character, with or without colors.
func TestWriteIsClean(t *testing.T) {
	const evil = "x\x1b[31m\x1b[2J\x1b]0;PWNED\ax"
	bad := Condition{Type: evil, Status: evil, Severity: evil, Reason: evil, Message: evil}
	for _, color := range []bool{false, true} {
		streams, buffers := iostreams.Test()
		streams.SetOutColor(color)
		root := &Node{Kind: "Cluster", Name: evil, Ready: &bad, Conditions: []Condition{bad}, Version: evil, NodeName: evil, Children: []*Node{
			{Kind: evil, Name: evil, MetaName: "ControlPlane", Deleting: true}, {Kind: "Machine", Group: []string{evil, evil}, Ready: &bad},
		}}
		if err := Write(streams.ColoredOut(), root, Style{Color: color, Wide: true}); err != nil {
			t.Fatal(err)
		}
		out := buffers.Out.String()
		if strings.ContainsAny(out, "\a") || strings.Contains(out, "\x1b[2J") || strings.Contains(out, "\x1b]") || strings.Contains(out, "x\x1b[31m") ||
			!strings.Contains(out, "x^[[31m^[[2J^[]0;PWNED^Gx") {
			t.Errorf("with color %t: %q", color, out)
		}
	}
}
