package controlplane

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/snapshot"
)

// deleting makes the control plane one that is being deleted.
func (b *bench) deleting(finalizers ...string) {
	b.KCP.DeletionTimestamp = &metav1.Time{Time: kcptest.Now()}
	b.KCP.Finalizers = append(finalizers, controlplanev1.KubeadmControlPlaneFinalizer)
}

// caching makes the bench read Machines from a cache that is never updated.
func (b *bench) caching(t *testing.T, machines ...client.Object) {
	t.Helper()
	b.Client = withCache{b.Client, fake.NewClientBuilder().WithScheme(b.Client.Scheme()).WithObjects(machines...).
		WithIndex(&clusterv1.Machine{}, snapshot.ClusterIndex, snapshot.ByCluster).WithIndex(&clusterv1.MachinePool{}, snapshot.ClusterIndex, snapshot.ByCluster).Build()}
	for _, obj := range machines {
		if m, ok := obj.(*clusterv1.Machine); ok && metav1.IsControlledBy(m, b.KCP) {
			b.Machines = append(b.Machines, &snapshot.Machine{Machine: m})
		}
	}
}

// withCache is a client that reads from a cache.
type withCache struct {
	client.Client
	client.Reader
}

func (w withCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return w.Reader.Get(ctx, key, obj, opts...)
}

func (w withCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return w.Reader.List(ctx, list, opts...)
}

// The finalizer is removed when the API server has no Machine left, regardless of the cache.
func TestTheFinalizerIsRemovedAfterALiveList(t *testing.T) {
	worker := kcptest.Machine("w", "some-set")
	delete(worker.Labels, clusterv1.MachineControlPlaneLabel)
	foreign := kcptest.Machine("f", "another-control-plane")
	pool := &clusterv1.MachinePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec:       clusterv1.MachinePoolSpec{ClusterName: "c"},
	}
	cases := []struct {
		reason   string
		noPools  bool // the kind is not enabled
		live     []client.Object
		released bool
		held     []string
	}{
		{reason: "all are deleted", released: true},
		{reason: "the cache does not show a new Machine", live: []client.Object{kcptest.Machine("m", "cp-uid")}, held: []string{"m"}},
		{reason: "the cache does not show a worker", live: []client.Object{worker}, held: []string{"w"}},
		{reason: "the cache does not show a MachinePool", live: []client.Object{pool}},
		{reason: "MachinePools are not listed if the kind is not enabled", noPools: true, live: []client.Object{pool}, released: true},
		{reason: "Machines with another controller do not matter", live: []client.Object{foreign}, released: true, held: []string{"f"}},
		{reason: "the hook is removed from orphaned Machines", live: []client.Object{kcptest.Machine("o", "")}, released: true},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t, tc.live...)
			b.MachinePools = !tc.noPools
			store := b.Client
			b.caching(t)
			b.deleting()
			if _, err := b.remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if released := !slices.Contains(b.KCP.Finalizers, controlplanev1.KubeadmControlPlaneFinalizer); released != tc.released {
				t.Errorf("the finalizer is removed: %t, want %t", released, tc.released)
			}
			b.Client = store
			if got := b.Held(t); !slices.Equal(got, tc.held) {
				t.Errorf("held are %q, want %q", got, tc.held)
			}
		})
	}
}

func TestDeletionOfMachines(t *testing.T) {
	worker := kcptest.Machine("w", "some-set")
	delete(worker.Labels, clusterv1.MachineControlPlaneLabel)
	pool := func(of string) *clusterv1.MachinePool {
		return &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: clusterv1.MachinePoolSpec{ClusterName: of}}
	}
	created := func(obj client.Object) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			if err := b.Client.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := []struct {
		reason     string
		cached     []client.Object
		finalizers []string
		change     func(*testing.T, *bench) // in the API server
		staying    int
		held       []string
	}{
		{
			reason: "the cache does not show a worker", cached: []client.Object{kcptest.Machine("a", "cp-uid")},
			change: created(worker.DeepCopy()), staying: 2, held: []string{"a", "w"},
		},
		{
			reason: "the cache does not show a MachinePool", cached: []client.Object{kcptest.Machine("a", "cp-uid")},
			change: created(pool("c")), staying: 1, held: []string{"a"},
		},
		{reason: "a MachinePool of another Cluster does not matter", cached: []client.Object{kcptest.Machine("a", "cp-uid")}, change: created(pool("other"))},
		{
			reason: "Machines that users delete are held as long as there are workers", cached: []client.Object{kcptest.Machine("a", "cp-uid"), kcptest.Machine("b", "cp-uid")},
			change: func(t *testing.T, b *bench) {
				b.Deleted(t, "a", "b")
				created(worker.DeepCopy())(t, b)
			},
			staying: 1, held: []string{"a", "b", "w"},
		},
		{reason: "all are deleted at once, and no etcd member is removed first", cached: []client.Object{kcptest.Machine("a", "cp-uid"), kcptest.Machine("b", "cp-uid")}},
		{reason: "not before the workers are deleted", cached: []client.Object{kcptest.Machine("a", "cp-uid"), worker}, staying: 2, held: []string{"a", "w"}},
		{
			reason: "orphaned Machines are not deleted", cached: []client.Object{kcptest.Machine("a", "cp-uid")}, finalizers: []string{metav1.FinalizerOrphanDependents},
			staying: 1, held: []string{"a"},
		},
		{
			reason: "a Machine that has another owner now is not deleted", cached: []client.Object{kcptest.Machine("a", "cp-uid")}, staying: 1,
			change: func(t *testing.T, b *bench) {
				m := &clusterv1.Machine{}
				if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, m); err != nil {
					t.Fatal(err)
				}
				m.OwnerReferences[0].UID = "another"
				if err := b.Client.Update(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // It waits in vain for the cache to show deletions.
				var objects []client.Object
				for _, o := range tc.cached {
					objects = append(objects, o.DeepCopyObject().(client.Object))
				}
				b := newBench(t, objects...)
				list := &clusterv1.MachineList{}
				if err := b.Client.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				if tc.change != nil {
					tc.change(t, b)
				}
				store := b.Client
				b.MachinePools = true
				var cached []client.Object
				for i := range list.Items {
					cached = append(cached, &list.Items[i])
				}
				b.caching(t, cached...)
				b.deleting(tc.finalizers...)
				_, err := b.remove(t.Context())
				b.Client = store
				if staying, _ := b.Count(t); staying != tc.staying {
					t.Errorf("%d Machines are not deleted, want %d; error %v", staying, tc.staying, err)
				}
				if got := b.Held(t); !slices.Equal(got, tc.held) {
					t.Errorf("held are %q, want %q", got, tc.held)
				}
			})
		})
	}
}

// Live reads happen once before the first Machine is deleted, and once before the finalizer is removed.
func TestWhatDeletionCosts(t *testing.T) {
	b := newBench(t, kcptest.Machine("a", "cp-uid"), kcptest.Machine("b", "cp-uid"))
	b.deleting()
	for round, want := range []int{2, 0, 0, 2} {
		list := &clusterv1.MachineList{}
		if err := b.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		b.Machines = nil
		for i := range list.Items {
			b.Machines = append(b.Machines, &snapshot.Machine{Machine: &list.Items[i]})
		}
		b.MachinePools, b.LiveReads = true, 0
		if _, err := b.remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.LiveReads != want {
			t.Errorf("round %d: %d reads past the cache, want %d", round, b.LiveReads, want)
		}
		if _, all := b.Count(t); round > 0 && all > 0 { // as the Machine controller does
			m := b.Machines[0].Machine
			m.Finalizers = nil
			if err := b.Client.Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(b.KCP.Finalizers) > 0 {
		t.Errorf("finalizers %q are left", b.KCP.Finalizers)
	}
}

// While there are workers, etcd needs its quorum: draining their Nodes requires the API server.
func TestMachinesDeletedByUsersWhileThereAreWorkers(t *testing.T) {
	cases := []struct {
		reason      string
		deleting    []string
		away        bool
		initialized bool
		actions     []string
		held        []string
		again       bool
	}{
		{reason: "none is deleted", initialized: true, held: []string{"a", "b", "c"}},
		{reason: "the members of two are removed first", initialized: true, deleting: []string{"a", "b"}, actions: []string{"lead c", "remove a", "remove b"}, held: []string{"c"}},
		{reason: "the last member is not removed", initialized: true, deleting: []string{"a", "b", "c"}, actions: []string{"lead c", "remove a", "remove b"}, held: []string{"c"}, again: true},
		{reason: "no member is removed while the workload cluster is unreachable", initialized: true, away: true, deleting: []string{"a", "b"}, held: []string{"a", "b", "c"}, again: true},
		{reason: "the Machines of a cluster that was never initialized wait for its workers", away: true, deleting: []string{"a", "b"}, held: []string{"a", "b", "c"}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			b.KCP.Status.Initialized = tc.initialized
			worker := kcptest.Machine("w", "some-set")
			worker.Labels, worker.Annotations = map[string]string{clusterv1.ClusterNameLabel: "c"}, nil
			if err := b.Client.Create(t.Context(), worker); err != nil {
				t.Fatal(err)
			}
			b.Deleted(t, tc.deleting...)
			for _, name := range tc.deleting {
				b.Drained(t, name)
			}
			reload(t, b, f)
			b.Machines = slices.DeleteFunc(b.Machines, func(m *snapshot.Machine) bool { return m.Name == "w" })
			b.s.connection, b.s.inspection, b.Workloads = connection.State{}, health.Inspection{}, workloads{f}
			if tc.away {
				b.Workloads = unreachable{}
			}
			b.deleting()
			result, err := b.remove(t.Context())
			if err != nil || !result.Ends() || (result.After() > 0) != tc.again {
				t.Errorf("result %+v, error %v", result, err)
			}
			if diff := cmp.Diff(tc.actions, f.Actions()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if got := b.Held(t); !slices.Equal(tc.held, got) || len(f.QuorumLost) > 0 {
				t.Errorf("held are %q, want %q; quorum lost: %q", got, tc.held, f.QuorumLost)
			}
			if staying, _ := b.Count(t); staying != 4-len(tc.deleting) {
				t.Errorf("%d Machines are not deleted, want all that users have not deleted", staying)
			}
			// Without workers, etcd needs no quorum.
			if err := b.Client.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w"}}); err != nil {
				t.Fatal(err)
			}
			worker.Finalizers = nil
			if err := b.Client.Patch(t.Context(), worker, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				t.Fatal(err)
			}
			reload(t, b, f)
			if _, err := b.remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if staying, _ := b.Count(t); staying != 0 || len(b.Held(t)) != 0 {
				t.Errorf("%d Machines are not deleted, held are %q", staying, b.Held(t))
			}
		})
	}
}
