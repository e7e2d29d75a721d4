package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestOwnerOf(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		labels   map[string]string
		managers []string
		want     Owner
	}{
		{"an object of users", map[string]string{"team": "a"}, []string{"kubectl"}, Owner{Exists: true}},
		{"written by clusterctl", map[string]string{"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": "infrastructure-x"}, []string{"clusterctl"}, Owner{Provider: "infrastructure-x"}},
		{"the label of the provider was removed", map[string]string{"clusterctl.cluster.x-k8s.io": ""}, nil, Owner{}},
		{"a part of cert-manager", map[string]string{"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/core": "cert-manager"}, nil, Owner{Exists: true, Part: "cert-manager"}},
		{"an aggregated ClusterRole that Kubernetes wrote once more after it was deleted", nil, []string{"clusterrole-aggregation-controller"}, Owner{Exists: true, Remainder: true}},
		{"one without rules, of which Kubernetes records nothing", nil, nil, Owner{Exists: true, Remainder: true}},
		{"an aggregated ClusterRole of users", nil, []string{"kubectl", "clusterrole-aggregation-controller"}, Owner{Exists: true}},
	} {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
		for _, m := range tc.managers {
			o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{Manager: m})
		}
		if diff := cmp.Diff(tc.want, OwnerOf(o)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

func TestObjection(t *testing.T) {
	for _, tc := range []struct {
		reason string
		kind   string
		owner  Owner
		want   bool
	}{
		{"what Kubernetes' aggregation left is of nobody", "ClusterRole", Owner{Exists: true, Remainder: true}, false},
		{"but only ClusterRoles are aggregated", "CustomResourceDefinition", Owner{Exists: true, Remainder: true}, true},
		{"a ClusterRole of users", "ClusterRole", Owner{Exists: true}, true},
		{"of a provider that is gone", "ClusterRole", Owner{Exists: true, Provider: "infrastructure-y"}, false},
	} {
		o := &unstructured.Unstructured{}
		o.SetKind(tc.kind)
		o.SetName("n")
		if got := tc.owner.Objection(o, "infrastructure-x", func(string) bool { return false }); (got != "") != tc.want {
			t.Errorf("%s: %q", tc.reason, got)
		}
	}
}
