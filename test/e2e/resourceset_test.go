package e2e

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/journey"
)

// networkSet makes a ClusterResourceSet install the pod network of the node images in a Cluster, in place of network.
func networkSet(t *testing.T, w *journey.World, cluster *clusterv1.Cluster) {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(w.Tools.Root, "providers", "infrastructure-docker", "nodeimage", "files", "node", "kind", "manifests", "default-cni.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "addons.cluster.x-k8s.io/v1beta1", "kind": "ClusterResourceSet",
		"metadata": map[string]any{"name": "pod-network"},
		"spec": map[string]any{
			"clusterSelector": map[string]any{"matchLabels": map[string]any{"pod-network": "default"}},
			"resources":       []any{map[string]any{"kind": "ConfigMap", "name": "pod-network"}},
		},
	}}
	w.Applied(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "pod-network"}, Data: map[string]string{"manifest.yaml": string(manifest)}}, set)
	if cluster.Labels == nil {
		cluster.Labels = map[string]string{}
	}
	cluster.Labels["pod-network"] = "default"
}
