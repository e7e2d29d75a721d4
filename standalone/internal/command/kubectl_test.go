package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Plugins of kubectl run as kubectl runs them: with all that follows their name, and only if kubectl has no such command.
func TestKubectlPlugins(t *testing.T) {
	folder := t.TempDir()
	for name, script := range map[string]string{
		"kubectl-own_thing":    "#!/bin/sh\necho \"plugin $@\"\nexit 3\n",
		"kubectl-version":      "#!/bin/sh\necho shadowed\n",
		"kubectl-create-thing": "#!/bin/sh\necho \"create $@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil { // #nosec G306 -- it is run
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
		exit   int
	}{
		{"a plugin gets its flags, and its exit status is that of the command", []string{"own-thing", "list", "--all", "-o", "x"}, "plugin list --all -o x\n", 3},
		{"a command of kubectl comes first", []string{"version", "--client"}, "Client Version: ", 0},
		{"plugins of create", []string{"create", "thing", "-f", "y"}, "create -f y\n", 0},
		{"neither a command nor a plugin", []string{"nosuch"}, "", 1},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			cmd := program(t, append([]string{"kubectl"}, tc.args...)...)
			cmd.Env = append(cmd.Env, "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, _ := cmd.Output()
			if !strings.HasPrefix(string(out), tc.want) || cmd.ProcessState.ExitCode() != tc.exit {
				t.Errorf("it printed %q, and ended with %d", out, cmd.ProcessState.ExitCode())
			}
		})
	}
}
