package removal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/internal/distribution/manifest"
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
			reason: "Namespace and CRDs are kept; nothing calls a webhook that is gone.",
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
		"Shared": {
			reason:  "Cluster-scoped objects that another instance may use are kept.",
			options: Options{Shared: true},
			want: []string{"MutatingWebhookConfiguration toy", "Certificate toy-system/serving", "Deployment toy-system/toy",
				"Service toy-system/toy", "ClusterRole toy-system-role"},
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
