package root

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		reason      string
		commandLine []string
		want        []string
	}{
		{"clusterctl itself", []string{"/usr/bin/clusterctl", "init"}, []string{"init"}},
		{"a plugin of kubectl", []string{"/usr/bin/kubectl-operator", "init", "-i", "aws"}, []string{"operator", "init", "-i", "aws"}},
		{"a plugin of kubectl on Windows", []string{"kubectl-operator.exe"}, []string{"operator"}},
	} {
		if diff := cmp.Diff(tc.want, Arguments(tc.commandLine)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}
