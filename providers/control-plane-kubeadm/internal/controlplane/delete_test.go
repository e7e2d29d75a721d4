package controlplane

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// deleting makes the control plane one that is being deleted.
func (b *bench) deleting(finalizers ...string) {
	b.KCP.DeletionTimestamp = &metav1.Time{Time: object.Now()}
	b.KCP.Finalizers = append(finalizers, controlplanev1.KubeadmControlPlaneFinalizer)
}

// caching makes the bench read the current Machines and MachinePools from now on.
func (b *bench) caching(t *testing.T) {
	t.Helper()
	b.API.Cache.Freeze(&clusterv1.MachineList{}, &clusterv1.MachinePoolList{})
	b.Reload(t)
	b.Machines = slices.DeleteFunc(b.Machines, func(m *snapshot.Machine) bool { return !metav1.IsControlledBy(m, b.KCP) })
}

// The finalizer is removed when the API server has no Machine left, regardless of the cache.
func TestTheFinalizerIsRemovedAfterALiveList(t *testing.T) {
	worker := kcptest.Machine("w", "some-set")
	delete(worker.Labels, clusterv1.MachineControlPlaneLabel)
	foreign := kcptest.Machine("f", "another-control-plane")
	pool := kcptest.Build().MachinePool("p")
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
			b := newBench(t)
			b.MachinePools = !tc.noPools
			b.caching(t)
			for _, obj := range tc.live {
				testenv.Must(t, b.API.Create(t.Context(), obj.DeepCopyObject().(client.Object)))
			}
			b.deleting()
			if _, err := b.remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if released := !slices.Contains(b.KCP.Finalizers, controlplanev1.KubeadmControlPlaneFinalizer); released != tc.released {
				t.Errorf("the finalizer is removed: %t, want %t", released, tc.released)
			}
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
		return object.Builder{Namespace: "ns", ClusterName: of}.MachinePool("p")
	}
	created := func(obj client.Object) func(*testing.T, *bench) {
		return func(t *testing.T, b *bench) {
			testenv.Must(t, b.API.Create(t.Context(), obj))
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
				testenv.Must(t, b.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, m))
				m.OwnerReferences[0].UID = "another"
				testenv.Must(t, b.API.Update(t.Context(), m))
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // It waits until its timeout for the cache to show deletions.
				b := newBench(t, tc.cached...)
				b.caching(t)
				if tc.change != nil {
					tc.change(t, b)
				}
				b.MachinePools = true
				b.deleting(tc.finalizers...)
				_, err := b.remove(t.Context())
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
		b.Reload(t)
		b.MachinePools, b.API.LiveReads = true, nil
		if _, err := b.remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(b.API.LiveReads) != want {
			t.Errorf("round %d: %d reads past the cache, want %d", round, len(b.API.LiveReads), want)
		}
		if _, all := b.Count(t); round > 0 && all > 0 { // as the Machine controller does
			m := b.Machines[0].Machine
			m.Finalizers = nil
			testenv.Must(t, b.API.Update(t.Context(), m))
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
			b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(tc.initialized)
			worker := kcptest.Machine("w", "some-set")
			worker.Labels, worker.Annotations = map[string]string{clusterv1.ClusterNameLabel: "c"}, nil
			testenv.Must(t, b.API.Create(t.Context(), worker))
			b.Deleted(t, tc.deleting...)
			for _, name := range tc.deleting {
				b.Drained(t, name)
			}
			reload(t, b, f)
			b.Machines = slices.DeleteFunc(b.Machines, func(m *snapshot.Machine) bool { return m.Name == "w" })
			b.s.connection, b.s.observed, b.Workloads = connection.State{}, nil, workloads{f}
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
			testenv.Must(t, b.API.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w"}}))
			worker.Finalizers = nil
			testenv.Must(t, b.API.Patch(t.Context(), worker, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
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
