package root

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// planned are the arguments for a new Cluster and its class.
func planned(t *testing.T, args ...string) []string {
	t.Helper()
	cluster := filepath.Join(t.TempDir(), "cluster.yaml")
	content := "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: c1}\nspec: {topology: {class: in-memory, version: v1.30.0}}\n"
	if err := os.WriteFile(cluster, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	class := "../../../providers/infrastructure-in-memory/config/templates/clusterclass-in-memory.yaml"
	return append(args, "-f", class, "-f", cluster)
}

// TestPlan checks that both names of the command do the same, whatever their flags are.
func TestPlan(t *testing.T) {
	c := newCLI(t)
	dir := filepath.Join(t.TempDir(), "not", "there")
	short := c.works(planned(t, "plan")...)
	if !strings.Contains(short.Out, " * default/c1\n") || strings.Contains(short.Out, "directory") || !strings.Contains(short.Err, "--output-directory") {
		t.Errorf("a plan without a directory: %q, messages %q", short.Out, short.Err)
	}
	files := c.works(planned(t, "plan", "--output-directory", dir)...)
	old := c.works(planned(t, "alpha", "topology", "plan", "-o", dir)...)
	if !strings.HasPrefix(files.Out, short.Out) || old.Out != files.Out {
		t.Errorf("names and files change what is printed:\n%s\n%s\n%s", short.Out, files.Out, old.Out)
	}
	if created, err := filepath.Glob(dir + "/created/InMemoryCluster_default_c1*.yaml"); err != nil || len(created) != 1 {
		t.Errorf("the files of created objects are %v, %v", created, err)
	}
	for _, args := range [][]string{{"plan"}, {"alpha", "topology", "plan", "-o", dir}} {
		asJSON, asYAML := c.works(planned(t, append(args, "--output", "json")...)...), c.works(planned(t, append(args, "--output", "yaml")...)...)
		converted, err := yaml.YAMLToJSON([]byte(asYAML.Out))
		want, got := map[string]any{}, map[string]any{}
		if err != nil || json.Unmarshal(converted, &got) != nil || json.Unmarshal([]byte(asJSON.Out), &want) != nil || len(want["rounds"].([]any)) == 0 {
			t.Errorf("%v: %q, %q", args, asJSON.Out, asYAML.Out)
		}
	}
}

// TestPlanExitCode is about new Clusters, and classes without Clusters.
func TestPlanExitCode(t *testing.T) {
	newCLI(t) // It has no kubeconfig.
	streams, buffers := iostreams.Test()
	args := planned(t, "plan", "--exit-code")
	f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
	if err := Run(t.Context(), f, args); factory.ExitCode(err) != factory.ExitChanges {
		t.Errorf("a new Cluster is a change, got %v", err)
	}
	if strings.Contains(buffers.Err.String(), "Error") {
		t.Errorf("an answer is printed as an error: %s", buffers.Err)
	}
	if err := run(t.Context(), f, args[:len(args)-2]); err != nil {
		t.Errorf("a class alone changes nothing, got %v", err)
	}
}
