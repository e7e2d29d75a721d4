package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	"sigs.k8s.io/cluster-api/internal/condition"
)

func TestReleased(t *testing.T) {
	ok := func(c *clusterv1.Cluster) { c.Annotations = map[string]string{runtimev1.OkToDeleteAnnotation: ""} }
	cases := map[string]struct {
		reason  string
		hooks   bool
		cluster *clusterv1.Cluster
		waits   bool
	}{
		"NoHooks":   {"nobody is asked", false, cluster(withTopology, deleting), false},
		"NoClass":   {"hooks are for Clusters of a class", true, cluster(deleting), false},
		"Held":      {"the hook has not answered", true, cluster(withTopology, deleting), true},
		"Permitted": {"it has", true, cluster(withTopology, deleting, ok), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hooks = tc.hooks
			if r, err := w.released(t.Context(), tc.cluster); err != nil || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
		})
	}
}

func TestDeleteChildren(t *testing.T) {
	dying := child(&clusterv1.MachineDeployment{}, "dying", true)
	dying.DeletionTimestamp, dying.Finalizers = &metav1.Time{Time: now}, []string{"x/y"}
	stranger := child(&clusterv1.Machine{}, "stranger", true)
	stranger.Labels[clusterv1.ClusterNameLabel] = "other"
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		there   []client.Object
		writes  []string
		waits   bool
	}{
		"None": {"nothing is left", cluster(withPlane), nil, nil, false},
		"All": {"every kind of direct child goes", cluster(withPlane), []client.Object{
			child(&clusterv1.MachinePool{}, "pool", true), child(&clusterv1.MachineDeployment{}, "md", true),
			child(&clusterv1.MachineSet{}, "set", true), child(&clusterv1.Machine{}, "worker", true),
		}, []string{"delete pool", "delete md", "delete set", "delete worker"}, true},
		"Grandchild":        {"what others own is deleted by them, and awaited", cluster(withPlane), []client.Object{child(&clusterv1.MachineSet{}, "set", false)}, nil, true},
		"Dying":             {"once is enough", cluster(withPlane), []client.Object{dying}, nil, true},
		"ManagedPlane":      {"its control plane object deletes these, later", cluster(withPlane), []client.Object{controlPlaneMachine("cp")}, nil, false},
		"MachinesOnly":      {"without such an object they are children too", cluster(), []client.Object{controlPlaneMachine("cp")}, []string{"delete cp"}, true},
		"OfAnother Cluster": {"other Clusters are not concerned", cluster(withPlane), []client.Object{stranger}, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.there...)
			r, err := w.deleteChildren(t.Context(), tc.cluster)
			if err != nil || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeleteReferenced(t *testing.T) {
	others := infraCluster(nil)
	owner := cluster(func(c *clusterv1.Cluster) { c.Name, c.UID = "other", "uid-other" })
	others.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))})
	unowned := infraCluster(nil)
	unowned.SetOwnerReferences(nil)
	cases := map[string]struct {
		reason string
		infra  client.Object
		want   string
		writes []string
		waits  bool
	}{
		"There":   {"it is deleted, once, and awaited", infraCluster(nil), clusterv1.DeletingReason, []string{"delete c-infra"}, true},
		"Unowned": {"also if it was never taken over", unowned, clusterv1.DeletingReason, []string{"delete c-infra"}, true},
		"Others":  {"another Cluster's infrastructure stays", others, clusterv1.DeletedReason, nil, false},
		"Gone":    {"deletion goes on", nil, clusterv1.DeletedReason, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var there []client.Object
			if tc.infra != nil {
				there = append(there, tc.infra)
			}
			w, c := newWorld(t, there...), cluster(withInfra, deleting)
			for range 2 {
				if r, err := w.deleteInfrastructure(t.Context(), c); err != nil || r.Ends() != tc.waits {
					t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
				}
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			want := condition.False(clusterv1.InfrastructureReadyCondition, clusterv1.ConditionSeverityInfo, tc.want, "")
			if diff := cmp.Diff(clusterv1.Conditions{want}, c.Status.Conditions); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
