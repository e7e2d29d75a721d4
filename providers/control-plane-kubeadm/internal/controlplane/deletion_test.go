package controlplane

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
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

func beingDeleted(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: object.Now()} }

func unhooked(m *clusterv1.Machine) {
	delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation)
}

// newDeleted returns a control plane that is being deleted. The snapshot has the Machines with its label that exist now.
func newDeleted(t *testing.T, objects ...client.Object) *kcptest.World {
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

// deleter returns a Controller in a World. pools is whether the kind MachinePool is enabled.
func deleter(w *kcptest.World, pools bool) *Controller {
	c := newController(w.Clients, w.External, w.Client, unreachable{}, nil)
	c.machinePools, c.watchesPools = pools, pools
	return c
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
	// Released is whether the control plane has lost its finalizer.
	Released bool
}

// try runs a step and returns its outcome.
func try(t *testing.T, w *kcptest.World, do func(context.Context, *scope) (step.Result, error)) outcome {
	t.Helper()
	w.API.LiveReads = nil
	result, err := steptest.Run(t.Context(), w.KCP, &scope{ControlPlane: w.ControlPlane}, step.Do("deletion", do))
	got := outcome{
		Waiting: result.Waiting(), Stale: err != nil && step.IsStale(err), Failed: err != nil && !step.IsStale(err), Reads: len(w.API.LiveReads),
		Released: !controllerutil.ContainsFinalizer(w.KCP, controlplanev1.KubeadmControlPlaneFinalizer),
	}
	if c := condition.Get(w.KCP, controlplanev1.ResizedV1Beta1Condition); c != nil {
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

// Without a response of the API server, nothing is deleted or released.
func TestDeletionWithoutTheAPIServer(t *testing.T) {
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
			want: outcome{Failed: true, Reason: clusterv1.DeletingV1Beta1Reason, Staying: []string{"a"}, Held: []string{"a"}},
		},
		{
			reason: "the MachinePools are unknown", objects: []client.Object{own("a")}, fails: &clusterv1.MachinePoolList{},
			want: outcome{Failed: true, Reason: clusterv1.DeletingV1Beta1Reason, Staying: []string{"a"}, Held: []string{"a"}, Reads: 1},
		},
		{
			reason: "our hook cannot be removed, so the Machine would never be gone", objects: []client.Object{own("a"), own("b", unhooked)}, patches: true,
			want: outcome{Waiting: gone, Failed: true, Reason: clusterv1.DeletingV1Beta1Reason, Staying: []string{"a"}, Held: []string{"a"}, Reads: 2},
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
			w := newDeleted(t, tc.objects...)
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
			do := deleter(w, true).deleteMachines
			if tc.release {
				w.Machines, do = nil, deleter(w, true).release
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

// Deletion depends neither on the template nor on infrastructure machines: both may be deleted before, with their kinds.
func TestDeletionWithoutInfrastructure(t *testing.T) {
	tests := []struct {
		reason string
		gone   []schema.GroupVersionKind // kinds without a CustomResourceDefinition
	}{
		{reason: "the template does not exist"},
		{reason: "the kind of the template does not exist", gone: []schema.GroupVersionKind{kind("TestMachineTemplate")}},
		{reason: "no kind of the provider exists", gone: []schema.GroupVersionKind{kind("TestMachineTemplate"), kind("TestMachine")}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			b, _ := whole(t)
			for _, k := range tt.gone {
				testenv.Must(t, b.API.Delete(t.Context(), object.CRD(k)))
			}
			b.deleting()
			deletion := func() {
				declared := b.declared()
				s, err := declared.Scope(t.Context(), b.KCP)
				testenv.Must(t, err)
				_, err = steptest.Run(t.Context(), b.KCP, s, append(declared.Deletion, declared.Report...)...)
				testenv.Must(t, err)
			}
			deletion()
			if staying, _ := b.Count(t); staying > 0 || len(b.Held(t)) > 0 {
				t.Errorf("%d Machines are not deleted, held are %q", staying, b.Held(t))
			}
			for _, m := range b.Machines { // as the Machine controller does
				b.Update(t, m.Name, func(m *clusterv1.Machine) { m.Finalizers = nil })
			}
			deletion()
			if len(b.KCP.Finalizers) > 0 {
				t.Errorf("finalizers %q are left", b.KCP.Finalizers)
			}
		})
	}
}
