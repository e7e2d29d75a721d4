package journey

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
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
	cluster := &clusterv1.Cluster{}
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind()+" "+o.GetName())
		if o.GetKind() != "Cluster" {
			w.Applied(o)
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, cluster); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Contains(kinds, "ClusterClass in-memory-quick-start") || !slices.Contains(kinds, "Cluster documented") {
		t.Fatalf("generated %v, want the class and the Cluster", kinds)
	}
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), Version(older), c.WorkloadMatches)
	c.Gone()
}
