package create

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

const (
	classTemplate = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: "${CLUSTER_NAME}"}
spec: {topology: {class: toy, version: v1.30.0}}
`
	class = `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryClusterTemplate
metadata: {name: toy}
spec: {template: {spec: {}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryMachineTemplate
metadata: {name: toy}
spec: {template: {spec: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: toy}
spec:
  infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryClusterTemplate, name: toy}}
`
)

// repository returns a configuration with a provider that publishes a class.
func repository(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "infrastructure-toy", "v1.0.0")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	config, err := yaml.Marshal(map[string]any{"providers": []any{map[string]any{
		"name": "toy", "type": "InfrastructureProvider", "url": filepath.Join(folder, "infrastructure-components.yaml"),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"cluster-template.yaml": classTemplate, "clusterclass-toy.yaml": class, "../../clusterctl.yaml": string(config),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "..", "..", "clusterctl.yaml")
}

// fromClass runs the command with the repository's template. killed, unless negative, is how many writes are done before
// the command has no more connection, as if it had been killed.
func (c *cli) fromClass(config string, killed int) (string, error) {
	c.t.Helper()
	streams, buffers := iostreams.Test()
	f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
	f.ConfigPath = config
	gone := errors.New("killed")
	writes := 0
	f.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
		return &management.Cluster{Namespace: "default", Client: interceptor.NewClient(c.env.Client, interceptor.Funcs{
			Apply: func(ctx context.Context, w client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				if len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) == 0 {
					if writes == killed {
						return gone
					}
					writes++
				}
				return w.Apply(ctx, o, opts...)
			},
			Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if writes == killed {
					return gone
				}
				return w.Delete(ctx, o, opts...)
			},
		})}, nil
	}
	cmd := NewCluster(f, nil)
	cmd.SetArgs([]string{"c1", "--infrastructure", "toy:v1.0.0", "-n", c.namespace, "--no-wait"})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(c.t.Context())
	if killed >= 0 && !errors.Is(err, gone) {
		c.t.Errorf("the command must be killed after %d writes, but it ended with %v", killed, err)
	}
	return strings.ReplaceAll(buffers.Err.String(), c.namespace, "NS"), err
}

func TestContinuesAfterKill(t *testing.T) {
	config := repository(t)
	for killed := range 4 {
		t.Run(fmt.Sprintf("after %d writes", killed), func(t *testing.T) {
			c := newCLI(t)
			_, _ = c.fromClass(config, killed)
			stderr, err := c.fromClass(config, -1)
			if err != nil {
				t.Fatalf("the same command must continue: %v", err)
			}
			if !strings.Contains(stderr, "Cluster NS/c1 created") || strings.Count(stderr, "unchanged") > killed {
				t.Errorf("the second run must create what is missing:\n%s", stderr)
			}
		})
	}
}

func TestOthersObjectsAreLeftAlone(t *testing.T) {
	config := repository(t)
	tests := []struct {
		reason, existing, want string
	}{
		{
			reason:   "an existing template of a missing class may be in use",
			existing: `{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachineTemplate, metadata: {name: toy}, spec: {template: {spec: {}}}}`,
			want:     "its template InMemoryMachineTemplate NS/toy does",
		},
		{
			reason:   "a Cluster that was not created by this command is not changed",
			existing: `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: c1}, spec: {paused: true}}`,
			want:     "Cluster NS/c1 already exists and was not created by `clusterctl create cluster`",
		},
		{
			reason:   "a Cluster that is being deleted cannot be continued",
			existing: `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: c1, finalizers: [example.org/held]}, spec: {paused: true}}`,
			want:     "Cluster NS/c1 is being deleted",
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			c := newCLI(t)
			existing := object(t, tc.existing)
			existing.SetNamespace(c.namespace)
			if err := c.env.Client.Create(t.Context(), existing, client.FieldOwner("kubectl-create")); err != nil {
				t.Fatal(err)
			}
			if len(existing.GetFinalizers()) > 0 {
				if err := c.env.Client.Delete(t.Context(), existing); err != nil {
					t.Fatal(err)
				}
			}
			_, err := c.fromClass(config, -1)
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), c.namespace, "NS"), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
			if left := c.kinds("toy"); len(left) > 0 && existing.GetKind() != "InMemoryMachineTemplate" {
				t.Errorf("nothing must be written, found %v", left)
			}
		})
	}
}
