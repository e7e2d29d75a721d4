package machineset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/testworld"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// stale is a world whose controller runs only when the test says so, on a cache as old as the test wants.
type stale struct {
	*world
	cache  *testworld.Stale
	events *record.FakeRecorder
	runner *step.Runner[*clusterv1.MachineSet]
	// live reads the API server, and reads are what it was asked for, such as "get MachineSet".
	live  client.WithWatch
	reads []string
	// recent is what the manager knows of its writes; clock is that of it.
	recent *step.Recent
	clock  *testclock.FakePassiveClock
}

func newStale(t *testing.T) *stale {
	t.Helper()
	e := server.Start(t, "config/core/crd", "config/infrastructure-in-memory/crd", "config/bootstrap-kubeadm/crd")
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), clusterv1.AddToScheme(s), apiextensionsv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	direct := e.NewClient(t, s)
	w := &stale{world: &world{T: t, Client: direct, namespace: e.Namespace(t)}, events: record.NewFakeRecorder(1000)}
	w.live = interceptor.NewClient(direct, w.noting())
	w.cache = testworld.NewStale(t, direct, w.namespace)
	w.clock = testclock.NewFakePassiveClock(time.Now())
	w.restart()
	w.make(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c"}})
	w.make(w.object(infrastructure, "InMemoryMachineTemplate", "small"))
	w.make(w.object(bootstrap, "KubeadmConfigTemplate", "join"))
	return w
}

func (w *stale) noting() interceptor.Funcs {
	note := func(verb string, obj runtime.Object) {
		w.reads = append(w.reads, verb+" "+strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1beta1."))
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			note("get", obj)
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			note("list", list)
			return c.List(ctx, list, opts...)
		},
	}
}

// restart replaces the manager by a new one that remembers nothing.
func (w *stale) restart() {
	w.Helper()
	w.recent = step.NewRecent(5*time.Second, w.clock)
	w.forget()
}

// forget replaces the controller by one that remembers nothing but what the API server answered.
func (w *stale) forget() {
	outside := step.Outside{Client: w.cache, Live: w.live, Recorder: w.events, Clock: clock.RealClock{}, Recent: w.recent}
	c := newController(outside, false)
	c.visibilityTimeout = 0 // frozen caches do not move
	w.runner = c.declared().Runner(c.Outside)
}

func (w *stale) reconcile(set *clusterv1.MachineSet) error {
	w.Helper()
	_, err := w.runner.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(set)})
	return err
}

// settle reconciles a few times, as events would.
func (w *stale) settle(set *clusterv1.MachineSet) {
	w.Helper()
	for range 4 {
		if err := w.reconcile(set); err != nil {
			w.Fatal(err)
		}
	}
}

// resize changes the size of a set in the API server.
func (w *stale) resize(set *clusterv1.MachineSet, replicas int32) {
	w.Helper()
	w.change(set, func() { set.Spec.Replicas = &replicas })
}

func (w *stale) names() []string {
	w.Helper()
	var out []string
	for _, m := range w.machines() {
		out = append(out, m.Name)
	}
	return out
}

func (w *stale) wantMachines(n int, reason string) {
	w.Helper()
	if got := w.names(); len(got) != n {
		w.Fatalf("%s: there are %d Machines, want %d: %v", reason, len(got), n, got)
	}
}

// orphan makes a Machine of nobody that the set's selector matches.
func (w *stale) orphan(name string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	w.Helper()
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name, Finalizers: []string{clusterv1.MachineFinalizer},
			Labels: map[string]string{clusterv1.MachineSetNameLabel: "s", clusterv1.ClusterNameLabel: "c"},
		},
		Spec: clusterv1.MachineSpec{ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
			InfrastructureRef: corev1.ObjectReference{APIVersion: infrastructure, Kind: "InMemoryMachine", Name: name}},
	}
	for _, f := range change {
		f(m)
	}
	w.make(m)
	return m
}

// TestScaleDownOnOldCache lets the cache show a change of a victim's health before its deletion: another Machine seems
// to be the one to delete.
func TestScaleDownOnOldCache(t *testing.T) {
	w := newStale(t)
	set := w.set(5)
	w.settle(set)
	w.wantMachines(5, "as many as asked for")
	machines := w.machines()
	for i := range machines[:3] {
		w.bringUp(&machines[i])
	}
	w.cache.Freeze(&clusterv1.MachineList{})
	w.resize(set, 3)
	w.settle(set)
	w.wantMachines(3, "a cache without the deletions does not lead to more of them")
	recovered := machines[3].DeepCopy()
	recovered.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: recovered.Name}
	condition.Set(recovered, condition.True(clusterv1.MachineNodeHealthyCondition))
	w.cache.Show(recovered)
	w.settle(set)
	w.wantMachines(3, "nor does the event of a victim's health, which precedes that of its deletion")
	w.restart()
	w.settle(set)
	w.wantMachines(3, "nor another leader with that cache")
}

// TestScaleUpOnOldCache lets the cache lack Machines whose names do not follow from ordinals: creating the missing ones
// does not collide with them.
func TestScaleUpOnOldCache(t *testing.T) {
	w := newStale(t)
	orphans := []*clusterv1.Machine{w.orphan("a"), w.orphan("b"), w.orphan("c")}
	set := w.set(3)
	w.settle(set)
	w.wantMachines(3, "the set adopts them")
	w.cache.Freeze(&clusterv1.MachineList{})
	w.cache.Hide(orphans[1])
	w.cache.Hide(orphans[2])
	w.resize(set, 6)
	w.settle(set)
	w.wantMachines(6, "what the cache lacks counts")
	w.restart()
	w.settle(set)
	w.wantMachines(6, "also for another leader")
}

// TestSizeOnOldCache lets the cache show a former size of the set.
func TestSizeOnOldCache(t *testing.T) {
	for name, tc := range map[string]struct {
		reason             string
		there, shown, real int32
		want               int
	}{
		"Delete": {reason: "none is deleted for a size of the past", there: 5, shown: 3, real: 5, want: 5},
		"Create": {reason: "none is created for a size of the past", there: 2, shown: 5, real: 2, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStale(t)
			set := w.set(tc.there)
			w.settle(set)
			w.resize(set, tc.shown)
			w.cache.Freeze(&clusterv1.MachineSetList{})
			w.resize(set, tc.real)
			w.settle(set)
			w.wantMachines(tc.want, tc.reason)
		})
	}
}

// TestNamesOfOldMachines counts what keeps names from coming back, and shows that they do not.
func TestNamesOfOldMachines(t *testing.T) {
	w := newStale(t)
	set := w.set(10)
	w.settle(set)
	used := w.names()
	if _, ok := w.generation(set); ok {
		t.Errorf("as long as no Machine leaves, nothing is written down")
	}
	for size := int32(9); size >= 7; size-- {
		w.resize(set, size)
		w.settle(set)
	}
	w.resize(set, 0)
	w.settle(set)
	if g, _ := w.generation(set); g != "1" {
		t.Errorf("names of generation %s are next, want 1: a set that becomes smaller writes once", g)
	}
	w.release()
	for round := range 3 {
		w.resize(set, 3)
		w.settle(set)
		w.wantMachines(3, "round")
		for _, name := range w.names() {
			if slices.Contains(used, name) {
				t.Errorf("round %d: the name %s comes back", round, name)
			}
		}
		used = append(used, w.names()...)
		if round == 1 {
			w.restart()
		}
		for _, m := range w.machines() { // deleted and gone before anybody looked
			if err := w.Delete(t.Context(), &m); err != nil {
				t.Fatal(err)
			}
		}
		if round == 1 {
			w.settle(set) // the next leader sees them leave
		}
		w.release()
	}
}

func (w *stale) generation(set *clusterv1.MachineSet) (string, bool) {
	w.Helper()
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		w.Fatal(err)
	}
	g, ok := set.Annotations[generationAnnotation]
	return g, ok
}

// TestOneBadMachine keeps its trouble to itself.
func TestOneBadMachine(t *testing.T) {
	w := newStale(t)
	w.orphan("bad", func(m *clusterv1.Machine) {
		m.Spec.InfrastructureRef = corev1.ObjectReference{APIVersion: "nobody.example.com/v1", Kind: "NoSuchMachine", Name: "bad"}
	})
	good := w.orphan("good")
	set := w.set(3)
	for range 4 {
		if err := w.reconcile(set); err == nil {
			t.Error("the trouble is reported")
		}
	}
	w.wantMachines(3, "the missing one is made")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(good), good); err != nil || good.Labels["tier"] != "one" {
		t.Errorf("the other one is brought up to date: %v, %v", good.Labels, err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil || set.Status.Replicas != 3 {
		t.Errorf("all are counted: %+v, %v", set.Status, err)
	}
	w.resize(set, 0)
	for range 2 {
		_ = w.reconcile(set) // as above
	}
	w.wantMachines(0, "and deleted")
}

// TestObjectsOfLeavingMachine does not make anything for a Machine that only the cache still has.
func TestObjectsOfLeavingMachine(t *testing.T) {
	w := newStale(t)
	set := w.set(1)
	w.settle(set)
	m := w.machines()[0]
	w.cache.Freeze(&clusterv1.MachineList{})
	if err := w.Delete(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	infra := w.get(&m.Spec.InfrastructureRef)
	if err := w.Delete(t.Context(), infra); err != nil {
		t.Fatal(err)
	}
	w.settle(set)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err == nil {
		t.Error("its infrastructure machine was made again")
	}
	w.release()
	w.settle(set)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err == nil {
		t.Error("its infrastructure machine was made again when it was gone")
	}
}

// TestReads counts what is read past the cache: three reads each time Machines are made or deleted, none otherwise.
func TestReads(t *testing.T) {
	w := newStale(t)
	set := w.set(3)
	look := []string{"get Cluster", "get MachineSet", "list MachineList"}
	for _, c := range []struct {
		reason string
		change func()
		want   []string
	}{
		{"three Machines are made at once", func() {}, look},
		{"nothing happens", func() { w.change(set, func() { set.Annotations = map[string]string{"note": "x"} }) }, nil},
		{"two are deleted at once", func() { w.resize(set, 1) }, look},
		{"they take their time", func() { w.bringUp(&w.machines()[0]) }, nil},
		{"they are gone", w.release, nil},
	} {
		w.reads = nil
		c.change()
		w.settle(set)
		reads := slices.DeleteFunc(w.reads, func(r string) bool { return strings.Contains(r, "CustomResourceDefinition") })
		if diff := cmp.Diff(c.want, reads); diff != "" {
			t.Errorf("%s, -want +got:\n%s", c.reason, diff)
		}
	}
}

// made is a set of three that this manager has just made, in a Cluster that it has just written.
func (w *stale) made() *clusterv1.MachineSet {
	w.Helper()
	cluster := &clusterv1.Cluster{}
	if err := w.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: "c"}, cluster); err != nil {
		w.Fatal(err)
	}
	set := w.set(3)
	w.recent.Saw(cluster, w.clock.Now())
	w.recent.Created(set, w.clock.Now())
	return set
}

func (w *stale) later() { w.clock.SetTime(w.clock.Now().Add(5 * time.Second)) }

// TestReadsOfNewSet fills a MachineSet that this manager has just made.
func TestReadsOfNewSet(t *testing.T) {
	look := []string{"get Cluster", "get MachineSet", "list MachineList"}
	for _, c := range []struct {
		reason string
		then   func(w *stale, set *clusterv1.MachineSet)
		want   []string
		count  int
	}{
		{"nobody else can have acted on it", func(*stale, *clusterv1.MachineSet) {}, nil, 3},
		{"that was a while ago", func(w *stale, _ *clusterv1.MachineSet) { w.later() }, look, 3},
		{"another process goes on", func(w *stale, _ *clusterv1.MachineSet) { w.restart() }, look, 3},
		{"the deployment resized it, which the cache does not show", func(w *stale, set *clusterv1.MachineSet) {
			w.cache.Freeze(&clusterv1.MachineSetList{})
			w.resize(set, 1)
			w.recent.Saw(set, w.clock.Now())
		}, look[1:2], 0},
		{"the Cluster was paused, which the cache does not show", func(w *stale, _ *clusterv1.MachineSet) {
			w.cache.Freeze(&clusterv1.ClusterList{})
			cluster := &clusterv1.Cluster{}
			if err := w.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: "c"}, cluster); err != nil {
				w.Fatal(err)
			}
			cluster.Spec.Paused = true
			if err := w.Update(w.Context(), cluster); err != nil {
				w.Fatal(err)
			}
			w.recent.Saw(cluster, w.clock.Now())
		}, look[:1], 0},
		{"it has adopted a Machine", func(w *stale, _ *clusterv1.MachineSet) { w.orphan("a") }, append(slices.Clone(look), "get Machine"), 3},
		{"its names are of another generation", func(w *stale, set *clusterv1.MachineSet) {
			w.change(set, func() { set.Annotations = map[string]string{generationAnnotation: "1"} })
		}, look, 3},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newStale(t)
			set := w.made()
			c.then(w, set)
			w.reads = nil
			if err := w.reconcile(set); err != nil {
				t.Fatal(err)
			}
			reads := slices.DeleteFunc(w.reads, func(r string) bool { return strings.Contains(r, "CustomResourceDefinition") })
			if diff := cmp.Diff(c.want, reads, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("read, -want +got:\n%s", diff)
			}
			w.wantMachines(c.count, c.reason)
		})
	}
}

// TestNewSetOnOldCache fills a MachineSet that this manager has just made, and its cache does not show its Machines.
func TestNewSetOnOldCache(t *testing.T) {
	w := newStale(t)
	w.cache.Freeze(&clusterv1.MachineList{})
	set := w.made()
	w.settle(set)
	w.wantMachines(3, "they are made once")
	first := w.names()
	w.forget()
	w.settle(set)
	if diff := cmp.Diff(first, w.names()); diff != "" {
		t.Errorf("without any memory of the names in use, making them again collides, -want +got:\n%s", diff)
	}
	gone := w.machines()[0]
	if err := w.Delete(t.Context(), &gone); err != nil {
		t.Fatal(err)
	}
	w.release()
	w.settle(set)
	w.wantMachines(3, "one that somebody deleted is replaced, and no other")
	w.resize(set, 1)
	w.reads = nil
	w.settle(set)
	w.wantMachines(1, "as few as asked for")
	if !slices.Contains(w.reads, "get Cluster") || !slices.Contains(w.reads, "get MachineSet") || !slices.Contains(w.reads, "list MachineList") {
		t.Errorf("before Machines are deleted all is read, however new the set is: %v", w.reads)
	}
}

// TestPausedOnOldCache makes nothing for a Cluster that is paused, for example because it is being moved away.
func TestPausedOnOldCache(t *testing.T) {
	w := newStale(t)
	set := w.set(1)
	w.cache.Freeze(&clusterv1.ClusterList{})
	cluster := &clusterv1.Cluster{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "c"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.Paused = true
	if err := w.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	w.settle(set)
	w.wantMachines(0, "the Cluster is paused, whatever the cache says")
}

// TestNothingIsDoneOnOldCache leaves the Machines of a Cluster alone that is paused, whatever else is to be done.
func TestNothingIsDoneOnOldCache(t *testing.T) {
	w := newStale(t)
	set := w.set(2)
	w.settle(set)
	sick := w.machines()[0]
	remediated := condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationReason, "")
	remediated.LastTransitionTime = metav1.Now()
	condition.Set(&sick, remediated)
	if err := w.Status().Update(t.Context(), &sick); err != nil {
		t.Fatal(err)
	}
	w.cache.Freeze(&clusterv1.ClusterList{})
	cluster := &clusterv1.Cluster{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "c"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.Paused = true
	if err := w.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	w.change(set, func() {
		set.Spec.Replicas = ptr.To[int32](3)
		set.Spec.Template.Spec.NodeDrainTimeout = &metav1.Duration{Duration: time.Minute}
	})
	before := w.machines()
	w.settle(set)
	if diff := cmp.Diff(before, w.machines()); diff != "" {
		t.Errorf("the Cluster is paused, and its Machines were changed, -want +got:\n%s", diff)
	}
}

// TestRemediationOnOldCache does not delete a Machine that recovered.
func TestRemediationOnOldCache(t *testing.T) {
	w := newStale(t)
	set := w.set(1)
	w.settle(set)
	m := w.machines()[0]
	w.cache.Freeze(&clusterv1.MachineList{})
	sick := m.DeepCopy()
	condition.Set(sick, condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationReason, ""))
	w.cache.Show(sick)
	w.bringUp(&m)
	w.settle(set)
	w.wantMachines(1, "it is not what it was when it was to be replaced")
}

// TestFailedAdoption tells of an orphan that cannot be adopted, and takes care of the others.
func TestFailedAdoption(t *testing.T) {
	w := newStale(t)
	w.orphan("refused", func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = nil })
	refuse := interceptor.NewClient(w.live, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if obj.GetName() == "refused" {
				return apierrors.NewForbidden(clusterv1.Resource("machines"), "refused", errors.New("a policy forbids it"))
			}
			return c.Patch(ctx, obj, p, opts...)
		},
	})
	w.cache.Client = refuse
	w.orphan("welcome")
	set := w.set(3)
	for range 2 {
		if err := w.reconcile(set); err == nil {
			t.Error("the trouble is reported")
		}
	}
	w.wantMachines(3, "the orphan counts among those of the set: two more are needed, not three")
	told := false
	for len(w.events.Events) > 0 {
		event := <-w.events.Events
		told = told || strings.HasPrefix(event, "Warning FailedAdopt Failed to adopt Machine \"refused\"")
	}
	if !told {
		t.Error("no event tells of it")
	}
}
