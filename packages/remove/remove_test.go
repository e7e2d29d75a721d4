package remove

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

func object(kind, namespace, name string) unstructured.Unstructured {
	o := unstructured.Unstructured{}
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func TestSelect(t *testing.T) {
	provider := &clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "toy-system", Name: "infrastructure-toy"}}
	objects := []unstructured.Unstructured{
		object("Namespace", "", "toy-system"), object("Namespace", "", "other"),
		object(manifest.KindCRD, "", "toys.example"),
		object("ClusterRole", "", "toy-manager-role"), object("ClusterRole", "", "toy-system-role"),
		object("Service", "toy-system", "toy"), object("Deployment", "toy-system", "toy"), object("Deployment", "other", "toy"),
		object("Certificate", "toy-system", "serving"),
		object("MutatingWebhookConfiguration", "", "toy"),
	}
	tests := map[string]struct {
		reason  string
		options Options
		want    []string
	}{
		"Default": {
			reason: "Namespace, CRDs and objects elsewhere are kept; no name protects a ClusterRole; nothing calls a webhook that is gone.",
			want: []string{"MutatingWebhookConfiguration toy", "Certificate toy-system/serving", "Deployment toy-system/toy",
				"Service toy-system/toy", "ClusterRole toy-manager-role", "ClusterRole toy-system-role"},
		},
		"Namespace": {
			reason:  "The Namespace takes what is in it along.",
			options: Options{Namespace: true},
			want:    []string{"MutatingWebhookConfiguration toy", "ClusterRole toy-manager-role", "ClusterRole toy-system-role", "Namespace toy-system"},
		},
		"CRDs": {
			reason:  "CRDs come before the Namespace.",
			options: Options{Namespace: true, CRDs: true},
			want: []string{"MutatingWebhookConfiguration toy", "ClusterRole toy-manager-role", "ClusterRole toy-system-role",
				"CustomResourceDefinition toys.example", "Namespace toy-system"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range Select(provider, objects, tc.options) {
				got = append(got, manifest.Describe(&o))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUsed(t *testing.T) {
	// The fake client reads metadata of registered kinds only: ConfigMaps stand for objects of a provider's kind.
	labeled := func(provider, namespace, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{clusterctlv1.ClusterctlLabel: "", clusterv1.ProviderNameLabel: provider},
		}}
	}
	half := labeled("infrastructure-toy", "", "half")
	half.SetLabels(map[string]string{clusterv1.ProviderNameLabel: "infrastructure-toy"})
	plain := labeled("", "", "plain")
	plain.SetLabels(nil)
	crd := object(manifest.KindCRD, "", "configmaps")
	crd.Object["spec"] = map[string]any{
		"group": "", "names": map[string]any{"kind": "ConfigMap"},
		"versions": []any{map[string]any{"name": "v1alpha1"}, map[string]any{"name": "v1", "storage": true}},
	}
	tests := []struct {
		reason string
		object *corev1.ConfigMap
		want   string
	}{
		{reason: "a component without namespace is deleted with the provider", object: labeled("infrastructure-toy", "", "default")},
		{reason: "a component in the provider's namespace, too", object: labeled("infrastructure-toy", "toy-system", "default")},
		{reason: "an object without labels is of a user", object: plain, want: "ConfigMap /plain"},
		{reason: "a copy of a component in another namespace is of a user", object: labeled("infrastructure-toy", "users", "copy"), want: "ConfigMap users/copy"},
		{reason: "the label of a provider alone is not enough", object: half, want: "ConfigMap /half"},
		{reason: "a component of a provider that stays is in use", object: labeled("infrastructure-other", "", "theirs"), want: "ConfigMap /theirs"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(tc.object).Build()
			provider := clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "toy-system", Name: "infrastructure-toy"}, ProviderName: "toy", Type: "InfrastructureProvider"}
			err := Used(t.Context(), c, []clusterctlv1.Provider{provider}, []unstructured.Unstructured{crd})
			if got := fmt.Sprint(err); (err != nil) != (tc.want != "") || !strings.Contains(got, tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}
