package cluster

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

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
			r, err := w.step(t, "delete-children", tc.cluster)
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
				if r, err := w.step(t, "delete-infrastructure", c); err != nil || r.Ends() != tc.waits {
					t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
				}
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			want := condition.False(clusterv1.InfrastructureReadyCondition, clusterv1.ConditionSeverityInfo, tc.want, "")
			if tc.waits {
				want.Message = "Waiting for GenericCluster c-infra to be deleted"
			}
			if diff := cmp.Diff(clusterv1.Conditions{want}, c.Status.Conditions); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeleteOnOldCache lets the API server have what the cache lacks.
func TestDeleteOnOldCache(t *testing.T) {
	machineSet, worker, ofPlane := child(&clusterv1.MachineSet{}, "set", false), child(&clusterv1.Machine{}, "worker", true), controlPlaneMachine("cp")
	ofPlane.SetOwnerReferences(nil)
	pool := child(&clusterv1.MachinePool{}, "pool", true)
	cases := map[string]struct {
		reason       string
		cached, live []client.Object
		writes       []string
		left         bool // whether the Cluster stays
	}{
		"Nothing":      {"nothing is left", nil, nil, nil, false},
		"Plane":        {"the control plane goes when the workers are gone", []client.Object{controlPlaneObject(nil)}, nil, []string{"delete c-plane"}, true},
		"PlaneNeeded":  {"not before", []client.Object{controlPlaneObject(nil)}, []client.Object{machineSet}, nil, true},
		"ChildFound":   {"a child that the cache lacks is deleted, too", []client.Object{controlPlaneObject(nil)}, []client.Object{worker}, []string{"delete worker"}, true},
		"OwnMachines":  {"its own Machines do not keep it", []client.Object{controlPlaneObject(nil)}, []client.Object{ofPlane}, []string{"delete c-plane"}, true},
		"PlaneLacking": {"a control plane that the cache lacks is not gone", []client.Object{infraCluster(nil)}, []client.Object{controlPlaneObject(nil)}, []string{"delete c-plane"}, true},
		"Infra":        {"then the infrastructure", []client.Object{infraCluster(nil)}, nil, []string{"delete c-infra"}, true},
		"InfraNeeded":  {"but not while there is a Machine", []client.Object{infraCluster(nil)}, []client.Object{ofPlane}, nil, true},
		"InfraLacking": {"infrastructure that the cache lacks is not gone", nil, []client.Object{infraCluster(nil)}, []string{"delete c-infra"}, true},
		"Needed":       {"nor does the Cluster go while there is one", nil, []client.Object{ofPlane}, nil, true},
		"PoolFound":    {"MachinePools are workers", []client.Object{controlPlaneObject(nil)}, []client.Object{pool}, []string{"delete pool"}, true},
		"InfraPool":    {"they need the infrastructure", []client.Object{infraCluster(nil)}, []client.Object{pool}, []string{"delete pool"}, true},
		"NeededByPool": {"and the Cluster", nil, []client.Object{pool}, []string{"delete pool"}, true},
		"NeededBySets": {"or what would make one", nil, []client.Object{machineSet}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, c := newWorld(t, tc.cached...), cluster(withPlane, withInfra, deleting)
			w.Live = w.Another(t, func(b *fake.ClientBuilder) {
				for _, obj := range append(tc.live, tc.cached...) {
					b.WithObjects(obj.DeepCopyObject().(client.Object))
				}
			})
			w.follow.Live = w.Live
			if _, err := w.all(t, c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if left := len(c.Finalizers) > 0; left != tc.left {
				t.Errorf("%s: the finalizers are %v", tc.reason, c.Finalizers)
			}
		})
	}
}

// TestReadsOfDeletion counts what a deletion asks past the cache.
func TestReadsOfDeletion(t *testing.T) {
	w, c := newWorld(t, controlPlaneObject(nil), infraCluster(nil)), cluster(withPlane, withInfra, deleting)
	reads := 0
	w.Live = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			reads++
			return c.List(ctx, list, opts...)
		},
	})
	w.follow.Live = w.Live
	for _, moment := range []struct {
		reason string
		gone   client.Object
		want   int
	}{
		{"the control plane is deleted when the workers are gone", nil, 4},
		{"then it is waited for", nil, 0},
		{"it is gone, and so are all Machines: the infrastructure goes", controlPlaneObject(nil), 5},
		{"then that is waited for", nil, 0},
		{"it is gone, and nothing came meanwhile", infraCluster(nil), 5},
	} {
		reads = 0
		if moment.gone != nil {
			before := moment.gone.DeepCopyObject().(client.Object)
			moment.gone.SetFinalizers(nil)
			if err := w.Client.Patch(t.Context(), moment.gone, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.all(t, c); err != nil {
			t.Fatal(err)
		}
		if reads != moment.want {
			t.Errorf("%s: %d reads, want %d", moment.reason, reads, moment.want)
		}
	}
	if len(c.Finalizers) > 0 {
		t.Errorf("the finalizers are %v", c.Finalizers)
	}
}
