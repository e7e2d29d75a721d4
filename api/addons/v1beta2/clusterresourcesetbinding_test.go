package v1beta2

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func set(name string) *ClusterResourceSet {
	return &ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func applied() *bool {
	yes := true
	return &yes
}

func TestBindingsOfASet(t *testing.T) {
	type bindings = []ResourceSetBinding
	a := ResourceSetBinding{ClusterResourceSetName: "a", Resources: []ResourceBinding{{Applied: applied()}}}
	b := ResourceSetBinding{ClusterResourceSetName: "b"}

	tests := map[string]struct {
		reason string
		start  bindings
		change func(*ClusterResourceSetBinding)
		want   bindings
	}{
		"GetsExisting": {
			reason: "a set that is recorded keeps its record",
			start:  bindings{a, b},
			change: func(c *ClusterResourceSetBinding) { c.GetOrCreateBinding(set("a")).Resources[0].Hash = "h" },
			want: bindings{
				{ClusterResourceSetName: "a", Resources: []ResourceBinding{{Applied: applied(), Hash: "h"}}}, b,
			},
		},
		"Creates": {
			reason: "a set that is not recorded is added at the end",
			start:  bindings{a},
			change: func(c *ClusterResourceSetBinding) { c.GetOrCreateBinding(set("b")) },
			want:   bindings{a, b},
		},
		"Removes": {
			reason: "only the named set goes",
			start:  bindings{a, b},
			change: func(c *ClusterResourceSetBinding) { c.RemoveBinding(set("a")) },
			want:   bindings{b},
		},
		"RemovesNothing": {
			reason: "a set that is not recorded cannot go",
			start:  bindings{a},
			change: func(c *ClusterResourceSetBinding) { c.RemoveBinding(set("b")) },
			want:   bindings{a},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := (&ClusterResourceSetBinding{Spec: ClusterResourceSetBindingSpec{Bindings: tc.start}}).DeepCopy()
			tc.change(got)
			if diff := cmp.Diff(tc.want, got.Spec.Bindings); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSetBinding(t *testing.T) {
	secret := ResourceRef{Kind: "Secret", Name: "x"}
	configMap := ResourceRef{Kind: "ConfigMap", Name: "x"}

	tests := map[string]struct {
		reason      string
		start       []ResourceBinding
		record      ResourceBinding
		want        []ResourceBinding
		wantApplied bool
	}{
		"Appends": {
			reason:      "objects of different kind and equal name are different objects",
			start:       []ResourceBinding{{ResourceRef: configMap, Applied: applied()}},
			record:      ResourceBinding{ResourceRef: secret, Hash: "h"},
			want:        []ResourceBinding{{ResourceRef: configMap, Applied: applied()}, {ResourceRef: secret, Hash: "h"}},
			wantApplied: false,
		},
		"Replaces": {
			reason:      "the newer record of an object stands",
			start:       []ResourceBinding{{ResourceRef: secret, Hash: "old"}, {ResourceRef: configMap}},
			record:      ResourceBinding{ResourceRef: secret, Hash: "new", Applied: applied()},
			want:        []ResourceBinding{{ResourceRef: secret, Hash: "new", Applied: applied()}, {ResourceRef: configMap}},
			wantApplied: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &ResourceSetBinding{Resources: tc.start}
			b.SetBinding(tc.record)
			if diff := cmp.Diff(tc.want, b.Resources); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := b.IsApplied(tc.record.ResourceRef); got != tc.wantApplied {
				t.Errorf("%s: IsApplied = %v, want %v", tc.reason, got, tc.wantApplied)
			}
			if b.IsApplied(ResourceRef{Kind: "Secret", Name: "other"}) {
				t.Error("an object without a record counts as applied")
			}
		})
	}
}
