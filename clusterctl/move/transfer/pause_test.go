package transfer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
)

func object(kind string, paused bool, annotations map[string]string) graph.Object {
	gvk := schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: kind}
	o := graph.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{}}, Kind: graph.Kind{GroupVersionKind: gvk, Namespaced: true}}
	o.SetResourceVersion("7")
	o.SetAnnotations(annotations)
	if paused {
		o.Unstructured.Object["spec"] = map[string]any{"paused": true}
	}
	return o
}

func TestChanges(t *testing.T) {
	mine := map[string]string{MoveAnnotation: "m"}
	kept := map[string]string{MoveAnnotation: "m", KeepAnnotation: ""}
	metadata := func(annotations map[string]any) map[string]any {
		return map[string]any{"resourceVersion": "7", "annotations": annotations}
	}
	resumed := map[string]any{MoveAnnotation: nil, KeepAnnotation: nil}
	tests := []struct {
		reason string
		got    map[string]any
		want   map[string]any
	}{
		{"an active Cluster is paused", pauseChanges(object("Cluster", false, nil), "m"),
			map[string]any{"spec": map[string]any{"paused": true}, "metadata": metadata(map[string]any{MoveAnnotation: "m"})}},
		{"the pause of a user is remembered", pauseChanges(object("Cluster", true, nil), "m"),
			map[string]any{"spec": map[string]any{"paused": true}, "metadata": metadata(map[string]any{MoveAnnotation: "m", KeepAnnotation: ""})}},
		{"the pause of an abandoned move is not that of a user", pauseChanges(object("Cluster", true, map[string]string{MoveAnnotation: "old"}), "m"),
			map[string]any{"spec": map[string]any{"paused": true}, "metadata": metadata(map[string]any{MoveAnnotation: "m"})}},
		{"a ClusterClass is paused by its annotation", pauseChanges(object("ClusterClass", false, nil), "m"),
			map[string]any{"metadata": metadata(map[string]any{MoveAnnotation: "m", clusterv1.PausedAnnotation: ""})}},
		{"the annotation of a user is remembered, too", pauseChanges(object("ClusterClass", false, map[string]string{clusterv1.PausedAnnotation: "x"}), "m"),
			map[string]any{"metadata": metadata(map[string]any{MoveAnnotation: "m", KeepAnnotation: ""})}},
		{"a Cluster is resumed", resumeChanges(object("Cluster", true, mine)),
			map[string]any{"spec": map[string]any{"paused": nil}, "metadata": metadata(resumed)}},
		{"a Cluster that its user paused stays paused", resumeChanges(object("Cluster", true, kept)), map[string]any{"metadata": metadata(resumed)}},
		{"a ClusterClass is resumed", resumeChanges(object("ClusterClass", false, mine)),
			map[string]any{"metadata": metadata(map[string]any{MoveAnnotation: nil, KeepAnnotation: nil, clusterv1.PausedAnnotation: nil})}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
