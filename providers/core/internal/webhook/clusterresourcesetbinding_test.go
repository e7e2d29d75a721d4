package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
)

func bindingOf(cluster string) *addonsv1.ClusterResourceSetBinding {
	return &addonsv1.ClusterResourceSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}, Spec: addonsv1.ClusterResourceSetBindingSpec{ClusterName: cluster},
	}
}

func TestClusterResourceSetBindingValidate(t *testing.T) {
	const prefix = `ClusterResourceSetBinding.addons.cluster.x-k8s.io "c" is invalid: `
	const disabled = prefix + "spec: Forbidden: ClusterResourceSetBindings require the feature gate ClusterResourceSet"
	for _, tc := range []struct {
		reason   string
		disabled bool
		old, in  *addonsv1.ClusterResourceSetBinding
		want     string
	}{
		{reason: "valid", in: bindingOf("c")},
		{reason: "older bindings have no name", in: bindingOf("")},
		{reason: "which is filled in", old: bindingOf(""), in: bindingOf("c")},
		{reason: "unchanged", old: bindingOf("c"), in: bindingOf("c")},
		{reason: "another Cluster", old: bindingOf("c"), in: bindingOf("d"), want: prefix + "spec.clusterName: Forbidden: field is immutable"},
		{reason: "no Cluster", old: bindingOf("c"), in: bindingOf(""), want: prefix + "spec.clusterName: Forbidden: field is immutable"},
		{reason: "the gate is disabled", disabled: true, in: bindingOf("c"), want: disabled},
		{reason: "the gate is disabled, update", disabled: true, old: bindingOf("c"), in: bindingOf("c"), want: disabled},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			v, err := ClusterResourceSetBinding{Enabled: !tc.disabled}.validator(), error(nil)
			if tc.old == nil {
				_, err = v.ValidateCreate(t.Context(), tc.in)
			} else {
				_, err = v.ValidateUpdate(t.Context(), tc.old, tc.in)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
