package files_test

import (
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/files"
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := fs.ReadFile(files.Node(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// kubelet and containerd must agree on it, or no Pod starts.
func TestCgroupDriver(t *testing.T) {
	if !strings.Contains(read(t, "etc/default/kubelet-container"), "--cgroup-driver=cgroupfs") ||
		!strings.Contains(read(t, "etc/containerd/config.toml.tmpl"), "SystemdCgroup = false") {
		t.Error("kubelet and containerd must use the same cgroup driver")
	}
}

func TestEntrypointParses(t *testing.T) {
	cmd := exec.Command("bash", "-n", "/dev/stdin")
	cmd.Stdin = strings.NewReader(read(t, "usr/local/bin/entrypoint"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
