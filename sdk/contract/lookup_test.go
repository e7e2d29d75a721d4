package contract

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestLookup(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: "clouds.g.io", Labels: map[string]string{V1Beta1.Label(): "v1alpha1_v1beta1", V1Beta2.Label(): "v1"},
		}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "others.g.io"}},
	).Build()
	l := &Lookup{}
	cloud := schema.GroupKind{Group: "g.io", Kind: "Cloud"}
	if version, ok := l.Version(t.Context(), cloud); ok || version != "" {
		t.Errorf("before there is a cache: %q, %t", version, ok)
	}
	l.Use(APIVersions{Reader: reader})
	for _, tc := range []struct {
		reason  string
		kind    schema.GroupKind
		version string
		ok      bool
	}{
		{"the newest version of the newest contract", cloud, "v1", true},
		{"a kind without a contract", schema.GroupKind{Group: "g.io", Kind: "Other"}, "", false},
		{"a kind that is not installed", schema.GroupKind{Group: "g.io", Kind: "Missing"}, "", false},
	} {
		if version, ok := l.Version(t.Context(), tc.kind); version != tc.version || ok != tc.ok {
			t.Errorf("%s: %q, %t", tc.reason, version, ok)
		}
	}
}
