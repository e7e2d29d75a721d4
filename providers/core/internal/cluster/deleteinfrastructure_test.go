package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestDeleteReferenced(t *testing.T) {
	foreign := infraCluster(nil)
	owner := build.Cluster(func(c *clusterv1.Cluster) { c.Name, c.UID = "other", "uid-other" })
	foreign.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))})
	unowned := infraCluster(nil)
	unowned.SetOwnerReferences(nil)
	cases := map[string]struct {
		reason string
		infra  client.Object
		want   string
		writes []string
		waits  bool
	}{
		"Exists":  {"it is deleted, once, and the Cluster waits", infraCluster(nil), clusterv1.DeletingV1Beta1Reason, []string{"delete GenericCluster c-infra"}, true},
		"Unowned": {"it is deleted even if it was never adopted", unowned, clusterv1.DeletingV1Beta1Reason, []string{"delete GenericCluster c-infra"}, true},
		"Foreign": {"it belongs to another Cluster", foreign, clusterv1.DeletedV1Beta1Reason, nil, false},
		"Gone":    {"deletion continues", nil, clusterv1.DeletedV1Beta1Reason, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.infra != nil {
				objects = append(objects, tc.infra)
			}
			w, c := newWorld(t, objects...), build.Cluster(withInfra, object.Deleting)
			for range 2 {
				if r, err := w.step(t, "delete-infrastructure", c); err != nil || r.Ends() != tc.waits {
					t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
				}
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			want := condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo, tc.want, "")
			if tc.waits {
				want.Message = "Waiting for GenericCluster c-infra to be deleted"
			}
			if diff := cmp.Diff(clusterv1.Conditions{want}, c.GetV1Beta1Conditions()); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeleteWithoutKinds deletes a Cluster whose references name kinds that are not installed, such as those of a provider that was deleted
// with its CustomResourceDefinitions, or misspelled ones.
func TestDeleteWithoutKinds(t *testing.T) {
	c := build.Cluster(object.Deleting, func(c *clusterv1.Cluster) {
		c.Finalizers = []string{clusterv1.ClusterFinalizer}
		c.Spec.InfrastructureRef = *object.Reference(schema.GroupVersionKind{Group: infra.Group, Version: "v1", Kind: "GenericClusterr"}, "c-infra")
		c.Spec.ControlPlaneRef = *object.Reference(schema.GroupVersionKind{Group: plane.Group, Version: "v1", Kind: "Gone"}, "c-plane")
	})
	w := newWorld(t)
	if r, err := w.all(t, c); err != nil || r.Ends() || len(c.Finalizers) > 0 {
		t.Errorf("waits for %q, finalizers are %q, err = %v", r.Waiting(), c.Finalizers, err)
	}
}
