package takeover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// The program gets all flags, and its output and exit status are those of the command.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, script, err string
		code                int
	}{
		{reason: "nothing would be written", script: "exit 0"},
		{reason: "the check failed", script: "exit 1", err: "the check could not be done: ", code: 1},
		{reason: "something would be written", script: "exit 2", err: "objects would be written", code: 2},
		{reason: "Machines would be replaced", script: "exit 3", err: "Machines would be created or deleted", code: 3},
		{reason: "it was killed", script: "kill -9 $$", err: "the check could not be done: ", code: 1},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "capi")
			testenv.Must(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\"\n"+tc.script+"\n"), 0o700))
			streams, output := iostreams.Test()
			err := runCheck(t.Context(), &CheckOptions{
				IO: streams, Find: func() (string, error) { return program, nil },
				Kubeconfig: management.Kubeconfig{Path: "k", Context: "c"}, Namespace: "n", Output: "json", Timeout: time.Minute,
			})
			if code := factory.ExitCode(err); code != tc.code || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("exit status %d, error %v", code, err)
			}
			want := "takeover check --kubeconfig=k --kubeconfig-context=c --namespace=n --output=json --timeout=1m0s --workload-clusters=false\n"
			if got := output.Out.String(); got != want {
				t.Errorf("it printed %q, want %q", got, want)
			}
		})
	}
}
