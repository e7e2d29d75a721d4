package deletion

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/live"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

const (
	gone             = "the Machines of the control plane to be deleted"
	remaining        = "the cache to show the remaining Machines and MachinePools of Cluster ns/c"
	workersToAppear  = "the cache to show the workers of Cluster ns/c"
	garbageCollector = "the garbage collector to orphan the Machines of the control plane"
)

// worker returns a Machine that is not a control plane Machine.
func worker(name, cluster string) *clusterv1.Machine {
	m := kcptest.Machine(name, "some-set")
	m.Labels, m.Annotations = map[string]string{clusterv1.ClusterNameLabel: cluster}, nil
	m.Spec.ClusterName = cluster
	return m
}

// pool returns a MachinePool. It lacks the label of the Cluster until its controller has reconciled it.
func pool(cluster string) *clusterv1.MachinePool {
	return &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: clusterv1.MachinePoolSpec{ClusterName: cluster}}
}

// own returns a Machine of the control plane.
func own(name string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := kcptest.Machine(name, "cp-uid")
	for _, f := range change {
		f(m)
	}
	return m
}

func deleting(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: object.Now()} }

func unhooked(m *clusterv1.Machine) {
	delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation)
}

// newWorld returns a control plane that is being deleted. The snapshot has the Machines with its label that exist now.
func newWorld(t *testing.T, objects ...client.Object) *kcptest.World {
	t.Helper()
	w := kcptest.New(t, objects...)
	deletion := metav1.NewTime(object.Now())
	w.KCP.DeletionTimestamp, w.KCP.Finalizers = &deletion, []string{controlplanev1.KubeadmControlPlaneFinalizer}
	w.Reload(t)
	var machines []*snapshot.Machine
	for _, m := range w.Machines {
		if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; controlPlane {
			machines = append(machines, m)
		}
	}
	w.Machines = machines
	return w
}

func deleter(w *kcptest.World, pools bool) Deleter {
	return Deleter{Outside: w.Outside, Confirm: live.Reader{Reader: w.Live}, MachinePools: pools}
}

// create adds an object to the API server that the cache does not show.
func create(obj client.Object) func(*testing.T, *kcptest.World) {
	return func(t *testing.T, w *kcptest.World) {
		t.Helper()
		if err := w.API.Create(t.Context(), obj.DeepCopyObject().(client.Object)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWorkers(t *testing.T) {
	elsewhere := worker("w", "c")
	elsewhere.Namespace = "other"
	cases := []struct {
		reason  string
		pools   bool
		objects []client.Object
		want    int
	}{
		{reason: "a Cluster without workers"},
		{reason: "control plane Machines are no workers", objects: []client.Object{own("a"), kcptest.Machine("b", "another")}},
		{reason: "Machines of MachineSets and standalone Machines are", objects: []client.Object{worker("w", "c"), worker("x", "c")}, want: 2},
		{reason: "a worker that is being deleted still needs the API server", objects: []client.Object{func() client.Object {
			w := worker("w", "c")
			deleting(w)
			return w
		}()}, want: 1},
		{reason: "workers of other Clusters do not matter", pools: true, objects: []client.Object{worker("w", "d"), elsewhere, pool("d")}},
		{reason: "a MachinePool is a worker", pools: true, objects: []client.Object{worker("w", "c"), pool("c")}, want: 2},
		{reason: "MachinePools are not listed if the kind is not enabled", objects: []client.Object{pool("c")}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			got, err := deleter(w, tc.pools).Workers(t.Context(), w.ControlPlane)
			if err != nil || got != tc.want || len(w.API.LiveReads) != 0 {
				t.Errorf("%d workers, want %d; %d live reads, want none; error %v", got, tc.want, len(w.API.LiveReads), err)
			}
		})
	}
}

// outcome is what a step did.
type outcome struct {
	Waiting string
	// Reason is the reason of condition Resized.
	Reason string
	// Stale and Failed are whether there is an error, and which kind.
	Stale, Failed bool
	// Staying are the Machines that are not being deleted, and Held those with our hook.
	Staying, Held []string
	// Reads is the number of live reads.
	Reads int
	// Released is whether the control plane has no finalizer any more.
	Released bool
}

// try runs a step and returns its outcome.
func try(t *testing.T, w *kcptest.World, do func(context.Context, *snapshot.ControlPlane) (step.Result, error)) outcome {
	t.Helper()
	w.API.LiveReads = nil
	result, err := steptest.Run(t.Context(), w.KCP, w.ControlPlane, step.Do("deletion", do))
	got := outcome{
		Waiting: result.Waiting(), Stale: err != nil && step.IsStale(err), Failed: err != nil && !step.IsStale(err), Reads: len(w.API.LiveReads),
		Released: !controllerutil.ContainsFinalizer(w.KCP, controlplanev1.KubeadmControlPlaneFinalizer),
	}
	if c := condition.Get(w.KCP, controlplanev1.ResizedCondition); c != nil {
		got.Reason = c.Reason
	}
	list := &clusterv1.MachineList{}
	if err := w.API.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Items {
		if m.DeletionTimestamp == nil {
			got.Staying = append(got.Staying, m.Name)
		}
	}
	got.Held = w.Held(t)
	return got
}

func TestMachines(t *testing.T) {
	write := func(name string, change func(*clusterv1.Machine)) func(*testing.T, *kcptest.World) {
		return func(t *testing.T, w *kcptest.World) {
			t.Helper()
			w.Update(t, name, change)
		}
	}
	cases := []struct {
		reason    string
		objects   []client.Object
		orphaning bool // the control plane is deleted with propagation policy Orphan
		noPools   bool // the kind MachinePool is not enabled
		change    func(*testing.T, *kcptest.World)
		want      outcome
	}{
		{reason: "without Machines there is nothing to check"},
		{
			reason: "all are deleted at once, because etcd needs no quorum any more", objects: []client.Object{own("a"), own("b")},
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingReason, Reads: 2},
		},
		{
			reason: "one read is enough if there are no MachinePools", objects: []client.Object{own("a")}, noPools: true,
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingReason, Reads: 1},
		},
		{
			reason: "the garbage collector is orphaning the Machines, so they must not be deleted", objects: []client.Object{own("a")}, orphaning: true,
			want: outcome{Waiting: garbageCollector, Reason: clusterv1.DeletingReason, Staying: []string{"a"}, Held: []string{"a"}},
		},
		{
			reason: "while all are being deleted without our hook, nothing is read", objects: []client.Object{own("a", deleting, unhooked)},
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingReason},
		},
		{
			reason: "a Machine that a user has deleted is released", objects: []client.Object{own("a", deleting)},
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingReason, Reads: 2},
		},
		{
			reason: "an orphan is released, but not deleted", objects: []client.Object{kcptest.Machine("o", ""), own("a", deleting, unhooked)},
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingReason, Staying: []string{"o"}, Reads: 2},
		},
		{
			reason: "a worker that the cache does not show needs the API server", objects: []client.Object{own("a")}, change: create(worker("w", "c")),
			want: outcome{Waiting: workersToAppear, Reason: clusterv1.DeletingReason, Staying: []string{"a", "w"}, Held: []string{"a"}, Reads: 2},
		},
		{
			reason: "so does a MachinePool, even without the label of the Cluster", objects: []client.Object{own("a")}, change: create(pool("c")),
			want: outcome{Waiting: workersToAppear, Reason: clusterv1.DeletingReason, Staying: []string{"a"}, Held: []string{"a"}, Reads: 2},
		},
		{
			reason: "a MachinePool of another Cluster does not", objects: []client.Object{own("a")}, change: create(pool("d")),
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingReason, Reads: 2},
		},
		{
			reason:  "a Machine that was written since it was read is kept, because it may have another controller; the others are deleted",
			objects: []client.Object{own("a", unhooked), own("b")},
			change:  write("a", func(m *clusterv1.Machine) { m.OwnerReferences[0].UID = "another" }),
			want:    outcome{Waiting: gone, Reason: clusterv1.DeletingReason, Stale: true, Staying: []string{"a"}, Reads: 2},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			if tc.orphaning {
				w.KCP.Finalizers = append(w.KCP.Finalizers, metav1.FinalizerOrphanDependents)
			}
			if tc.change != nil {
				tc.change(t, w)
			}
			if diff := cmp.Diff(tc.want, try(t, w, deleter(w, !tc.noPools).Machines)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	cases := []struct {
		reason  string
		objects []client.Object
		noPools bool
		want    outcome
	}{
		{reason: "nothing is left", want: outcome{Released: true, Reads: 2}},
		{reason: "nothing is left, and the kind MachinePool is not enabled", noPools: true, objects: []client.Object{pool("c")}, want: outcome{Released: true, Reads: 1}},
		{
			reason: "a Machine of the control plane that the cache does not show", objects: []client.Object{own("a")},
			want: outcome{Waiting: remaining, Staying: []string{"a"}, Held: []string{"a"}, Reads: 2},
		},
		{
			reason: "one that is being deleted still has its infrastructure", objects: []client.Object{own("a", deleting)},
			want: outcome{Waiting: remaining, Held: []string{"a"}, Reads: 2},
		},
		{reason: "a worker", objects: []client.Object{worker("w", "c")}, want: outcome{Waiting: remaining, Staying: []string{"w"}, Reads: 2}},
		{reason: "a MachinePool without the label of the Cluster", objects: []client.Object{pool("c")}, want: outcome{Waiting: remaining, Reads: 2}},
		{reason: "workers of another Cluster do not matter", objects: []client.Object{worker("w", "d"), pool("d")}, want: outcome{Staying: []string{"w"}, Released: true, Reads: 2}},
		{
			reason: "a control plane Machine with another controller does not matter, and keeps its hook", objects: []client.Object{kcptest.Machine("f", "another")},
			want: outcome{Staying: []string{"f"}, Held: []string{"f"}, Released: true, Reads: 2},
		},
		{
			reason: "an orphan is released: no controller would remove the hook later", objects: []client.Object{kcptest.Machine("o", "")},
			want: outcome{Staying: []string{"o"}, Released: true, Reads: 2},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			w.Machines = nil // The step runs when the cache shows none.
			if diff := cmp.Diff(tc.want, try(t, w, deleter(w, !tc.noPools).Release)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestFailures: without an answer of the API server, nothing is deleted or released.
func TestFailures(t *testing.T) {
	failing := func(t *testing.T, c client.Reader, what client.ObjectList) client.Reader {
		t.Helper()
		return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, machines := what.(*clusterv1.MachineList); machines == isMachines(list) {
					return errors.New("the API server hiccups")
				}
				return c.List(ctx, list, opts...)
			},
		})
	}
	cases := []struct {
		reason  string
		objects []client.Object
		fails   client.ObjectList
		patches bool // fail
		release bool
		want    outcome
	}{
		{
			reason: "the Machines of the Cluster are unknown", objects: []client.Object{own("a")}, fails: &clusterv1.MachineList{},
			want: outcome{Failed: true, Reason: clusterv1.DeletingReason, Staying: []string{"a"}, Held: []string{"a"}},
		},
		{
			reason: "the MachinePools are unknown", objects: []client.Object{own("a")}, fails: &clusterv1.MachinePoolList{},
			want: outcome{Failed: true, Reason: clusterv1.DeletingReason, Staying: []string{"a"}, Held: []string{"a"}, Reads: 1},
		},
		{
			reason: "our hook cannot be removed, so the Machine would never be gone", objects: []client.Object{own("a"), own("b", unhooked)}, patches: true,
			want: outcome{Waiting: gone, Failed: true, Reason: clusterv1.DeletingReason, Staying: []string{"a"}, Held: []string{"a"}, Reads: 2},
		},
		{reason: "whether Machines are left is unknown", release: true, fails: &clusterv1.MachineList{}, want: outcome{Failed: true}},
		{reason: "whether MachinePools are left is unknown", release: true, fails: &clusterv1.MachinePoolList{}, want: outcome{Failed: true, Reads: 1}},
		{
			reason: "an orphan that keeps our hook would never be deleted", release: true, objects: []client.Object{kcptest.Machine("o", "")}, patches: true,
			want: outcome{Failed: true, Staying: []string{"o"}, Held: []string{"o"}, Reads: 1},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			if tc.fails != nil {
				w.Live = failing(t, w.Live, tc.fails)
			}
			if tc.patches {
				w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
					Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
						return errors.New("cannot patch " + obj.GetName())
					},
				})
			}
			do := deleter(w, true).Machines
			if tc.release {
				w.Machines, do = nil, deleter(w, true).Release
			}
			if diff := cmp.Diff(tc.want, try(t, w, do)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func isMachines(list client.ObjectList) bool {
	_, ok := list.(*clusterv1.MachineList)
	return ok
}
