package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPartObjection: what clusterctl installs beside providers, such as the operator, replaces no objects of others, either.
func TestPartObjection(t *testing.T) {
	role := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "r"}}}
	for _, tc := range []struct {
		reason string
		owner  Owner
		want   string
	}{
		{"it does not exist", Owner{}, ""},
		{"its own object", Owner{Exists: true, Part: "operator"}, ""},
		{"that of a provider that is gone", Owner{Provider: "addon-gone"}, ""},
		{"that of a provider", Owner{Provider: "addon-x"}, "belongs to provider addon-x: delete that provider first, or use a release that does not have this object"},
		{"that of another part", Owner{Exists: true, Part: "cert-manager"}, "would replace a part of cert-manager"},
		{"that of users", Owner{Exists: true}, "exists already, and is not of operator: if it is, set its label: " +
			"kubectl label clusterrole.rbac.authorization.k8s.io r clusterctl.cluster.x-k8s.io/core=operator"},
	} {
		got := tc.owner.PartObjection(role, "operator", func(label string) bool { return label == "addon-x" })
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

func TestRelated(t *testing.T) {
	for _, tc := range []struct {
		label, other string
		want         bool
	}{
		{"bootstrap-k0smotron", "control-plane-k0smotron", true}, {"infrastructure-k0smotron", "bootstrap-k0smotron", true},
		{"bootstrap-x", "bootstrap-x", false}, {"bootstrap-x", "bootstrap-y", false}, {"bootstrap-x", "infrastructure-y", false},
		{"cluster-api", "bootstrap-x", false}, {"bootstrap-x", "", false}, {"", "bootstrap-x", false},
	} {
		if got := Related(tc.label, tc.other); got != tc.want {
			t.Errorf("Related(%q, %q) = %t", tc.label, tc.other, got)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		kind     string
		labels   map[string]string
		managers []string
		want     Owner
	}{
		{"an object of users", "CustomResourceDefinition", map[string]string{"team": "a"}, []string{"kubectl"}, Owner{Exists: true}},
		{"written by clusterctl", "ClusterRole", map[string]string{"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "infrastructure-x"}, []string{"clusterctl"}, Owner{Provider: "infrastructure-x"}},
		{"the label of the provider was removed", "ClusterRole", map[string]string{"clusterctl.cluster.x-k8s.io": ""}, nil, Owner{}},
		{"a part of cert-manager", "ClusterRole", map[string]string{"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/core": "cert-manager"}, nil, Owner{Exists: true, Part: "cert-manager"}},
		{"an aggregated ClusterRole that Kubernetes wrote once more after it was deleted", "ClusterRole", nil, []string{"clusterrole-aggregation-controller"}, Owner{}},
		{"one without rules, of which Kubernetes records nothing", "ClusterRole", nil, nil, Owner{}},
		{"only ClusterRoles are aggregated", "CustomResourceDefinition", nil, nil, Owner{Exists: true}},
		{"an aggregated ClusterRole of users", "ClusterRole", nil, []string{"kubectl", "clusterrole-aggregation-controller"}, Owner{Exists: true}},
	} {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
		for _, m := range tc.managers {
			o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{Manager: m})
		}
		if diff := cmp.Diff(tc.want, OwnerOf(tc.kind, o)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}
