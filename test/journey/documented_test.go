package journey

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDocumentedTemplate checks that the flavor in the documentation exists, includes its class, and results in a Cluster.
func TestDocumentedTemplate(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	r := w.Tools.Clusterctl(t.Context(), "", "generate", "cluster", "documented", "--kubeconfig", w.Kubeconfig,
		"--infrastructure", "in-memory", "--flavor", "in-memory-development", "--target-namespace", w.Namespace,
		"--kubernetes-version", older, "--control-plane-machine-count", "1", "--worker-machine-count", "1")
	if r.Failed {
		t.Fatal(r)
	}
	objects, err := parseObjects(r.Out)
	if err != nil {
		t.Fatal(err)
	}
	var cluster *unstructured.Unstructured
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind()+" "+o.GetName())
		if o.GetKind() == "Cluster" {
			cluster = o
		} else {
			w.Applied(o)
		}
	}
	if !slices.Contains(kinds, "ClusterClass in-memory-quick-start") || !slices.Contains(kinds, "Cluster documented") {
		t.Fatalf("generated %v, want the class and the Cluster", kinds)
	}
	c := &Subject{World: w, Name: cluster.GetName(), before: w.Inventory()}
	w.Applied(cluster) // In the version of the template.
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), Version(older), c.WorkloadMatches)
	c.Gone()
}
