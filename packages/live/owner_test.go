package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
