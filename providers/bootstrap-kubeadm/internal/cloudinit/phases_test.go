package cloudinit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/providers/internal/kubeadm/kubeadmtest"
)

// The script that retries phases runs with kubeadm of each version: it has all phases that the script calls.
func TestKubeadmHasPhases(t *testing.T) {
	// Instead of running a phase, this asks kubeadm whether it has it. An unknown phase has the help of its parent.
	const wrapper = `#!/bin/bash
if [ "${*: -1}" = --help ]; then exec %[1]s "$@"; fi
args="$*"
args="${args%%%% --config*}"
echo "$args" >> %[2]s
%[1]s $args --help | grep -qF "kubeadm $args [" || exit 3
`
	for _, program := range kubeadmtest.Programs(t) {
		for _, controlPlane := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s control plane %t", program.Version, controlPlane), func(t *testing.T) {
				dir := t.TempDir()
				calls := filepath.Join(dir, "calls")
				if err := os.WriteFile(filepath.Join(dir, "kubeadm"), fmt.Appendf(nil, wrapper, program.Path, calls), 0o700); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), "bash", "-c", retryScript(controlPlane, ""))
				cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%v: %s", err, out)
				}
				called, err := os.ReadFile(calls)
				if err != nil {
					t.Fatal(err)
				}
				least := map[bool]int{true: 7, false: 2}[controlPlane]
				if n := strings.Count(string(called), "\n"); n < least {
					t.Errorf("%d phases, want at least %d:\n%s", n, least, called)
				}
			})
		}
	}
}
