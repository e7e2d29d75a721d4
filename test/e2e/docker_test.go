package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/journey"
)

// docker runs the docker command, and returns the words that it prints.
func docker(ctx context.Context, args ...string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("docker %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.Fields(string(out)), nil
}

// must is docker for commands that cannot fail.
func must(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := docker(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func containers(t *testing.T, cluster string) []string {
	t.Helper()
	return must(t, "ps", "--all", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+cluster)
}

// subject creates the Cluster under test.
func subject(t *testing.T, w *journey.World, cluster *clusterv1.Cluster) *journey.Subject {
	t.Helper()
	removeIfFailed(t, cluster.Name)
	return w.Subject(cluster)
}

// removeIfFailed removes the containers of a Cluster if the test fails; KEEP=1 keeps them.
func removeIfFailed(t *testing.T, cluster string) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() || os.Getenv("KEEP") != "" {
			return
		}
		left, err := docker(context.Background(), "ps", "--all", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+cluster)
		if err == nil && len(left) > 0 {
			_, err = docker(context.Background(), append([]string{"rm", "--force", "--volumes"}, left...)...)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// gone deletes a Cluster and checks that nothing is left in the management cluster and in Docker.
func gone(t *testing.T, c *journey.Subject) {
	t.Helper()
	volumes := must(t, append([]string{"inspect", "--format", "{{range .Mounts}}{{.Name}} {{end}}"}, containers(t, c.Name)...)...)
	if len(volumes) == 0 {
		t.Fatalf("the machines of Cluster %s have no volumes", c.Name)
	}
	c.Gone()
	if left := containers(t, c.Name); len(left) > 0 {
		t.Errorf("containers of the deleted Cluster %s still exist: %v", c.Name, left)
	}
	for _, v := range volumes {
		if _, err := docker(t.Context(), "volume", "inspect", v); err == nil {
			t.Errorf("volume %s of a machine of the deleted Cluster %s still exists", v, c.Name)
		}
	}
}
