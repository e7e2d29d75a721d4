package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/test/journey"
)

// network installs the pod network of the node images, once the API server responds.
func network(t *testing.T, c *journey.Subject) {
	t.Helper()
	c.Eventually("the control plane is initialized", func(p *journey.Snapshot) error {
		if len(p.ControlPlanes.Items) == 1 && p.ControlPlanes.Items[0].Status.Initialized {
			return nil
		}
		return errors.New("it is not initialized")
	})
	kubectl(t, c, "apply", "--filename", filepath.Join(c.Tools.Root, "providers", "infrastructure-docker", "nodeimage", "files", "node", "kind", "manifests", "default-cni.yaml"))
}

// kubectl runs kubectl in the workload cluster.
func kubectl(t *testing.T, c *journey.Subject, args ...string) string {
	t.Helper()
	r := c.Tools.Clusterctl(t.Context(), "", "get", "kubeconfig", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig)
	if r.Failed {
		t.Fatal(r)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(r.Out), 0o600); err != nil {
		t.Fatal(err)
	}
	r = c.Tools.Kubectl(t.Context(), "", append([]string{"--kubeconfig", path}, args...)...)
	if r.Failed {
		t.Fatal(r)
	}
	return r.Out
}

// stage logs how long a part of a test took.
func stage(t *testing.T, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	t.Logf("%s: %.0f s", what, time.Since(began).Seconds())
}
