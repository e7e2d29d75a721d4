package check

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "metadata": map[string]any{"name": "c"},
		"spec": map[string]any{
			"format": "cloud-config", "later": "x",
			"files": []any{map[string]any{"path": "/a", "later": true}, map[string]any{"path": "/b", "later": true}},
		},
	}}
	if diff := cmp.Diff([]string{"spec.files[].later", "spec.later"}, unknownFields(o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.SetAPIVersion("infrastructure.example.com/v1")
	if got := unknownFields(o); got != nil {
		t.Errorf("fields of a kind of others: %v", got)
	}
}

// What an object refers to is copied with it.
func TestReferences(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, kind       string
		spec               map[string]any
		secrets, configMap []string
	}{
		{
			reason: "resources of a set", kind: "ClusterResourceSet",
			spec: map[string]any{"resources": []any{
				map[string]any{"kind": "Secret", "name": "cni"}, map[string]any{"kind": "ConfigMap", "name": "csi"}, map[string]any{"kind": "Other", "name": "x"},
			}},
			secrets: []string{"ns/cni"}, configMap: []string{"ns/csi"},
		},
		{
			reason: "files and passwords", kind: "KubeadmConfig",
			spec: map[string]any{
				"files": []any{
					map[string]any{"path": "/a", "content": "x"},
					map[string]any{"path": "/b", "contentFrom": map[string]any{"secret": map[string]any{"name": "files", "key": "b"}}},
				},
				"users": []any{map[string]any{"name": "u", "passwdFrom": map[string]any{"secret": map[string]any{"name": "users", "key": "u"}}}},
			},
			secrets: []string{"ns/files", "ns/users"},
		},
		{reason: "other kinds", kind: "Cluster", spec: map[string]any{"resources": []any{map[string]any{"kind": "Secret", "name": "x"}}}},
	} {
		s := &source{named: map[schema.GroupVersionResource]map[types.NamespacedName]bool{}}
		s.nameReferences(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": tc.kind, "metadata": map[string]any{"namespace": "ns", "name": "o"}, "spec": tc.spec,
		}})
		for r, want := range map[schema.GroupVersionResource][]string{secretResource: tc.secrets, configMapResource: tc.configMap} {
			var got []string
			for key := range s.named[r] {
				got = append(got, key.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tc.reason, r.Resource, diff)
			}
		}
	}
}

// A kind whose provider converts it is read in the version that our managers read.
func TestReadVersion(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		labels map[string]string
		want   string
	}{
		{"without labels, what is stored", nil, "v1"},
		{"the newest contract", map[string]string{domain + "/v1beta1": "v1", domain + "/v1beta2": "v2"}, "v2"},
		{"the newest version of a contract", map[string]string{domain + "/v1beta1": "v1_v2"}, "v2"},
		{"versions that are not served", map[string]string{domain + "/v1beta2": "v3", domain + "/v1beta1": "v1"}, "v1"},
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Labels = tc.labels
		crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Served: true, Storage: true}, {Name: "v2", Served: true}, {Name: "v3"},
		}
		if got := read(crd); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
		}
	}
}
