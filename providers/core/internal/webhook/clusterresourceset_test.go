package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
)

// resourceSet returns a ClusterResourceSet with all defaults, changed by change.
func resourceSet(change ...func(*addonsv1.ClusterResourceSet)) *addonsv1.ClusterResourceSet {
	s := &addonsv1.ClusterResourceSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"},
		Spec: addonsv1.ClusterResourceSetSpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cni": "kindnet"}},
			Resources:       []addonsv1.ResourceRef{{Kind: "ConfigMap", Name: "cni"}, {Kind: "Secret", Name: "cni"}},
			Strategy:        "ApplyOnce",
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func withStrategy(to string) func(*addonsv1.ClusterResourceSet) {
	return func(s *addonsv1.ClusterResourceSet) { s.Spec.Strategy = to }
}

func withSelector(selector metav1.LabelSelector) func(*addonsv1.ClusterResourceSet) {
	return func(s *addonsv1.ClusterResourceSet) { s.Spec.ClusterSelector = selector }
}

func withResource(kind, name string) func(*addonsv1.ClusterResourceSet) {
	return func(s *addonsv1.ClusterResourceSet) {
		s.Spec.Resources = append(s.Spec.Resources, addonsv1.ResourceRef{Kind: kind, Name: name})
	}
}

func TestClusterResourceSetDefault(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		in, want *addonsv1.ClusterResourceSet
	}{
		{"the default strategy", resourceSet(withStrategy("")), resourceSet()},
		{"a strategy is kept", resourceSet(withStrategy("Reconcile")), resourceSet(withStrategy("Reconcile"))},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if err := (ClusterResourceSet{}).Default(t.Context(), tc.in); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.in); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestClusterResourceSetValidate(t *testing.T) {
	const prefix = `ClusterResourceSet.addons.cluster.x-k8s.io "s" is invalid: `
	const disabled = prefix + "spec: Forbidden: ClusterResourceSets require the feature gate ClusterResourceSet"
	deleting := func(s *addonsv1.ClusterResourceSet) { s.DeletionTimestamp = ptr.To(metav1.Now()) }
	for _, tc := range []struct {
		reason   string
		disabled bool
		old, in  *addonsv1.ClusterResourceSet
		want     string
	}{
		{reason: "valid", in: resourceSet()},
		{reason: "resources can be added", old: resourceSet(), in: resourceSet(withResource("ConfigMap", "more"))},
		{reason: "an expression selects, too", in: resourceSet(withSelector(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}}))},
		{reason: "an older object gets the default", old: resourceSet(withStrategy("")), in: resourceSet()},
		{reason: "the gate is disabled", disabled: true, in: resourceSet(), want: disabled},
		{reason: "the gate is disabled, update", disabled: true, old: resourceSet(), in: resourceSet(), want: disabled},
		{reason: "finalizers can be removed without the gate", disabled: true, old: resourceSet(deleting), in: resourceSet(deleting)},
		{reason: "an empty selector", in: resourceSet(withSelector(metav1.LabelSelector{})),
			want: prefix + "spec.clusterSelector: Required value: must select the Clusters to apply the resources to"},
		{reason: "an unknown operator",
			in:   resourceSet(withSelector(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}})),
			want: prefix + `spec.clusterSelector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Near"}]}: "Near" is not a valid label selector operator`},
		{reason: "another kind", in: resourceSet(withResource("Pod", "p")),
			want: prefix + `spec.resources[2].kind: Unsupported value: "Pod": supported values: "ConfigMap", "Secret"`},
		{reason: "a name that no object can have, which could be a path to another namespace", in: resourceSet(withResource("Secret", "../kube-system/s")),
			want: prefix + `spec.resources[2].name: Invalid value: "../kube-system/s": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{reason: "a resource twice", in: resourceSet(withResource("ConfigMap", "cni")),
			want: prefix + `spec.resources[2]: Duplicate value: "ConfigMap cni"`},
		{reason: "another selector", old: resourceSet(), in: resourceSet(withSelector(metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})),
			want: prefix + "spec.clusterSelector: Forbidden: field is immutable"},
		{reason: "another strategy", old: resourceSet(), in: resourceSet(withStrategy("Reconcile")), want: prefix + "spec.strategy: Forbidden: field is immutable"},
		{reason: "an older object is not changed either", old: resourceSet(withStrategy("")), in: resourceSet(withStrategy("Reconcile")), want: prefix + "spec.strategy: Forbidden: field is immutable"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			v, err := ClusterResourceSet{Enabled: !tc.disabled}.validator(), error(nil)
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
