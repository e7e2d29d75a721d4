package storageversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestKeep(t *testing.T) {
	type versions map[string]string // by name: stored, served, or neither
	definition := func(kind string, all versions) *unstructured.Unstructured {
		var list []any
		for _, name := range []string{"v1alpha4", "v1beta1", "v1beta2"} {
			if how, ok := all[name]; ok {
				list = append(list, map[string]any{"name": name, "served": how != "", "storage": how == "stored"})
			}
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"spec": map[string]any{"group": "cluster.x-k8s.io", "names": map[string]any{"kind": kind}, "versions": list},
		}}
	}
	newest := versions{"v1alpha4": "", "v1beta1": "served", "v1beta2": "stored"}
	tests := []struct {
		reason, kind        string
		live, desired, want versions
	}{
		{"v1beta1 is stored, and stays", "Machine", versions{"v1beta1": "stored"}, newest, versions{"v1alpha4": "", "v1beta1": "stored", "v1beta2": "served"}},
		{"v1beta2 is stored already", "Machine", newest, newest, newest},
		{"what is stored is no longer served", "Machine", versions{"v1alpha4": "stored", "v1beta1": "served"}, newest, newest},
		{"what is stored does not exist any longer", "Machine", versions{"v1beta1": "stored"}, versions{"v1beta2": "stored"}, versions{"v1beta2": "stored"}},
		{"the kind of another project", "Widget", versions{"v1beta1": "stored"}, newest, newest},
		{"a definition without versions", "Machine", versions{}, newest, newest},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			desired := definition(tc.kind, tc.desired)
			Keep(desired, definition(tc.kind, tc.live))
			if diff := cmp.Diff(definition(tc.kind, tc.want).Object, desired.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
