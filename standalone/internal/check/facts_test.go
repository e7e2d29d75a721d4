package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
