package controlplane

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// owned is a control plane Machine with our hook; without an owner it was left to nobody.
func owned(name string, owner types.UID) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Finalizers: []string{clusterv1.MachineFinalizer},
			Labels:      map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
			Annotations: map[string]string{controlplanev1.PreTerminateHookCleanupAnnotation: ""},
		},
		Spec: clusterv1.MachineSpec{ClusterName: "c"},
	}
	if owner != "" {
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubeadmControlPlane", Name: "cp", UID: owner, Controller: ptr.To(true),
		}}
	}
	return m
}

// goes makes the control plane one that is being deleted.
func (b *bench) goes(finalizers ...string) {
	b.kcp.DeletionTimestamp = &metav1.Time{Time: now}
	b.kcp.Finalizers = append(finalizers, controlplanev1.KubeadmControlPlaneFinalizer)
}

// caching reads Machines from elsewhere than it writes them to.
func (b *bench) caching(t *testing.T, machines ...client.Object) {
	t.Helper()
	b.Client = withCache{b.Client, fake.NewClientBuilder().WithScheme(b.Client.Scheme()).WithObjects(machines...).
		WithIndex(&clusterv1.Machine{}, ClusterIndex, ByCluster).WithIndex(&clusterv1.MachinePool{}, ClusterIndex, ByCluster).Build()}
	for _, obj := range machines {
		if m, ok := obj.(*clusterv1.Machine); ok && metav1.IsControlledBy(m, b.kcp) {
			b.machines = append(b.machines, &machine{Machine: m})
		}
	}
}

// withCache is a client whose reads come from a cache.
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

// The finalizer goes when the API server has no Machine left, whatever the cache says.
func TestTheFinalizerIsReleasedOnALiveList(t *testing.T) {
	worker := owned("w", "some-set")
	delete(worker.Labels, clusterv1.MachineControlPlaneLabel)
	foreign := owned("f", "another-control-plane")
	pool := &clusterv1.MachinePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec:       clusterv1.MachinePoolSpec{ClusterName: "c"},
	}
	cases := []struct {
		reason   string
		noPools  bool // the kind is not in use
		live     []client.Object
		released bool
		held     []string
	}{
		{reason: "all are gone", released: true},
		{reason: "one was created since the cache was filled", live: []client.Object{owned("m", "cp-uid")}, held: []string{"m"}},
		{reason: "a worker was", live: []client.Object{worker}, held: []string{"w"}},
		{reason: "a MachinePool was", live: []client.Object{pool}},
		{reason: "where there are no MachinePools, nobody asks for them", noPools: true, live: []client.Object{pool}, released: true},
		{reason: "what belongs to somebody else is not waited for", live: []client.Object{foreign}, released: true, held: []string{"f"}},
		{reason: "what was left to nobody is not held up any more", live: []client.Object{owned("o", "")}, released: true},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t, tc.live...)
			b.MachinePools = !tc.noPools
			store := b.Client
			b.caching(t)
			b.goes()
			if _, err := b.delete(t.Context(), b.scope); err != nil {
				t.Fatal(err)
			}
			if released := !slices.Contains(b.kcp.Finalizers, controlplanev1.KubeadmControlPlaneFinalizer); released != tc.released {
				t.Errorf("the finalizer is released: %t, want %t", released, tc.released)
			}
			b.Client = store
			if got := b.held(t); !slices.Equal(got, tc.held) {
				t.Errorf("held are %q, want %q", got, tc.held)
			}
		})
	}
}

func TestDeletionOfMachines(t *testing.T) {
	worker := owned("w", "some-set")
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
		change     func(*testing.T, *bench) // of what the API server has
		staying    int
		held       []string
	}{
		{
			reason: "a worker that the cache does not show needs them, too", cached: []client.Object{owned("a", "cp-uid")},
			change: created(worker.DeepCopy()), staying: 2, held: []string{"a", "w"},
		},
		{
			reason: "so does a MachinePool", cached: []client.Object{owned("a", "cp-uid")},
			change: created(pool("c")), staying: 1, held: []string{"a"},
		},
		{reason: "that of another Cluster does not", cached: []client.Object{owned("a", "cp-uid")}, change: created(pool("other"))},
		{
			reason: "one that somebody else deletes is held as long", cached: []client.Object{owned("a", "cp-uid"), owned("b", "cp-uid")},
			change: func(t *testing.T, b *bench) {
				b.deleted(t, "a", "b")
				created(worker.DeepCopy())(t, b)
			},
			staying: 1, held: []string{"a", "b", "w"},
		},
		{reason: "they go all at once, and no member has to leave first", cached: []client.Object{owned("a", "cp-uid"), owned("b", "cp-uid")}},
		{reason: "not before the workers", cached: []client.Object{owned("a", "cp-uid"), worker}, staying: 2, held: []string{"a", "w"}},
		{
			reason: "who orphans them keeps them", cached: []client.Object{owned("a", "cp-uid")}, finalizers: []string{metav1.FinalizerOrphanDependents},
			staying: 1, held: []string{"a"},
		},
		{
			reason: "one that was given to somebody else stays", cached: []client.Object{owned("a", "cp-uid")}, staying: 1,
			change: func(t *testing.T, b *bench) {
				m := &clusterv1.Machine{}
				if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, m); err != nil {
					t.Fatal(err)
				}
				m.OwnerReferences[0].UID = "somebody-else"
				if err := b.Client.Update(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // This cache never shows what was deleted, which is waited for.
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
				b.goes(tc.finalizers...)
				_, err := b.delete(t.Context(), b.scope)
				b.Client = store
				if staying, _ := b.count(t); staying != tc.staying {
					t.Errorf("%d Machines stay, want %d; error %v", staying, tc.staying, err)
				}
				if got := b.held(t); !slices.Equal(got, tc.held) {
					t.Errorf("held are %q, want %q", got, tc.held)
				}
			})
		})
	}
}

// What confirms that no worker is left is asked once before the first Machine goes, and once before the finalizer does.
func TestWhatDeletionCosts(t *testing.T) {
	b := newBench(t, owned("a", "cp-uid"), owned("b", "cp-uid"))
	b.goes()
	for round, want := range []int{2, 0, 0, 2} {
		list := &clusterv1.MachineList{}
		if err := b.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		b.machines = nil
		for i := range list.Items {
			b.machines = append(b.machines, &machine{Machine: &list.Items[i]})
		}
		b.MachinePools, b.liveReads = true, 0
		if _, err := b.delete(t.Context(), b.scope); err != nil {
			t.Fatal(err)
		}
		if b.liveReads != want {
			t.Errorf("round %d: %d reads past the cache, want %d", round, b.liveReads, want)
		}
		if _, all := b.count(t); round > 0 && all > 0 { // the Machine controller finishes
			m := b.machines[0].Machine
			m.Finalizers = nil
			if err := b.Client.Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(b.kcp.Finalizers) > 0 {
		t.Errorf("finalizers %q are left", b.kcp.Finalizers)
	}
}

// While workers are left the quorum is kept: they need the API server to be drained.
func TestMachinesDeletedByOthersWhileWorkersAreLeft(t *testing.T) {
	cases := []struct {
		reason   string
		deleting []string
		away     bool
		begun    bool
		actions  []string
		held     []string
		again    bool
	}{
		{reason: "nobody deletes one", begun: true, held: []string{"a", "b", "c"}},
		{reason: "the members of two leave first", begun: true, deleting: []string{"a", "b"}, actions: []string{"lead c", "remove a", "remove b"}, held: []string{"c"}},
		{reason: "the last one stays", begun: true, deleting: []string{"a", "b", "c"}, actions: []string{"lead c", "remove a", "remove b"}, held: []string{"c"}, again: true},
		{reason: "all stay while the workload cluster is away", begun: true, away: true, deleting: []string{"a", "b"}, held: []string{"a", "b", "c"}, again: true},
		{reason: "a cluster that was never initialised goes with its workers", away: true, deleting: []string{"a", "b"}, held: []string{"a", "b", "c"}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			b.kcp.Status.Initialized = tc.begun
			worker := owned("w", "some-set")
			worker.Labels, worker.Annotations = map[string]string{clusterv1.ClusterNameLabel: "c"}, nil
			if err := b.Client.Create(t.Context(), worker); err != nil {
				t.Fatal(err)
			}
			b.deleted(t, tc.deleting...)
			for _, name := range tc.deleting {
				b.drained(t, name)
			}
			reload(t, b, f)
			b.machines = slices.DeleteFunc(b.machines, func(m *machine) bool { return m.Name == "w" })
			b.workload, b.observed, b.Workloads = nil, nil, f
			if tc.away {
				b.Workloads = unreachableWorkloads{}
			}
			b.goes()
			result, err := b.delete(t.Context(), b.scope)
			if err != nil || !result.Ends() || (result.After() > 0) != tc.again {
				t.Errorf("result %+v, error %v", result, err)
			}
			if diff := cmp.Diff(tc.actions, f.actions()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if got := b.held(t); !slices.Equal(tc.held, got) || len(f.quorumLost) > 0 {
				t.Errorf("held are %q, want %q; quorum lost: %q", got, tc.held, f.quorumLost)
			}
			if staying, _ := b.count(t); staying != 4-len(tc.deleting) {
				t.Errorf("%d Machines stay, want all that nobody else deletes", staying)
			}
			// Without workers there is no quorum to keep.
			if err := b.Client.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w"}}); err != nil {
				t.Fatal(err)
			}
			worker.Finalizers = nil
			if err := b.Client.Patch(t.Context(), worker, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				t.Fatal(err)
			}
			reload(t, b, f)
			if _, err := b.delete(t.Context(), b.scope); err != nil {
				t.Fatal(err)
			}
			if staying, _ := b.count(t); staying != 0 || len(b.held(t)) != 0 {
				t.Errorf("%d Machines stay, held are %q", staying, b.held(t))
			}
		})
	}
}
