package machineset

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// stale is a world whose controller runs only on request and reads from a cache that may be stale.
type stale struct {
	*world
	api    *fakeapi.Server
	runner *step.Runner[*clusterv1.MachineSet]
	// controller is the one that runner runs.
	controller *Controller
	// recent records the writes of the manager.
	recent *step.Recent
}

func newStale(t *testing.T) *stale {
	t.Helper()
	w := &stale{world: newWorld(t, false)}
	w.api = fakeapi.Over(t, w.Client.(client.WithWatch), w.namespace)
	w.restart()
	return w
}

// reads returns the reads of objects past the cache.
func (w *stale) reads() []string {
	return slices.DeleteFunc(slices.Clone(w.api.LiveReads), func(r string) bool { return strings.Contains(r, "CustomResourceDefinition") })
}

// restart replaces the manager with a new one.
func (w *stale) restart() {
	w.Helper()
	w.recent = step.NewRecent(5*time.Second, w.api.Clock)
	w.restartController()
}

// restartController replaces the controller with a new one, which shares only recent with the old one.
func (w *stale) restartController(changes ...func(*step.Clients)) {
	clients := w.api.ForController()
	clients.Recent = w.recent
	for _, change := range changes {
		change(&clients)
	}
	c := newController(clients, false)
	w.controller, w.runner = c, c.declared().Runner(c.Clients)
}

func (w *stale) reconcile(set *clusterv1.MachineSet) error {
	w.Helper()
	_, err := w.runner.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(set)})
	return err
}

// reconcileAll reconciles often enough to make all writes.
func (w *stale) reconcileAll(set *clusterv1.MachineSet) {
	w.Helper()
	for range 4 {
		testenv.Must(w, w.reconcile(set))
	}
}

// resize changes spec.replicas in the API server.
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

// TestScaleDownWithStaleCache has a deleted Machine in the cache, whose health changes there before its deletion: the cache
// suggests to delete another Machine.
func TestScaleDownWithStaleCache(t *testing.T) {
	w := newStale(t)
	set := w.set(5)
	w.reconcileAll(set)
	w.wantMachines(5, "the desired replicas")
	machines := w.machines()
	for i := range machines[:3] {
		w.bringUp(&machines[i])
	}
	w.api.Cache.Freeze(&clusterv1.MachineList{})
	w.resize(set, 3)
	w.reconcileAll(set)
	w.wantMachines(3, "a cache without the deletions does not lead to more deletions")
	recovered := machines[3].DeepCopy()
	recovered.Status.NodeRef = clusterv1.MachineNodeReference{Name: recovered.Name}
	condition.Set(recovered, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
	w.api.Cache.Show(recovered)
	w.reconcileAll(set)
	w.wantMachines(3, "nor does a change of health that comes before the deletion")
	w.restart()
	w.reconcileAll(set)
	w.wantMachines(3, "nor does another leader with the same cache")
}

// TestHugeNumber corrects a number of replicas by which far too many Machines would be created.
func TestHugeNumber(t *testing.T) {
	w := newStale(t)
	set := w.set(math.MaxInt32)
	c := newController(w.api.ForController(), false)
	decided, _, err := c.decide(t.Context(), &scope{set: set})
	if err != nil || decided.create != maxCreated || !decided.more {
		t.Errorf("one reconcile creates at most %d Machines: %+v, %v", maxCreated, decided, err)
	}
	w.resize(set, 2)
	w.reconcileAll(set)
	w.wantMachines(2, "the number was corrected")
}

// TestScaleUpWithStaleCache has adopted Machines in the API server that are not in the cache. Their names do not derive from
// ordinals, so that creating Machines is no conflict.
func TestScaleUpWithStaleCache(t *testing.T) {
	w := newStale(t)
	orphans := []*clusterv1.Machine{w.orphan("a"), w.orphan("b"), w.orphan("c")}
	set := w.set(3)
	w.reconcileAll(set)
	w.wantMachines(3, "the set adopts them")
	w.api.Cache.Freeze(&clusterv1.MachineList{})
	w.api.Cache.Hide(orphans[1])
	w.api.Cache.Hide(orphans[2])
	w.resize(set, 6)
	w.reconcileAll(set)
	w.wantMachines(6, "Machines that are not in the cache count")
	w.restart()
	w.reconcileAll(set)
	w.wantMachines(6, "they count for another leader, too")
}

// TestSizeWithStaleCache has an outdated size of the set in the cache.
func TestSizeWithStaleCache(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                 string
		existing, cached, live int32
		want                   int
	}{
		"Delete": {reason: "no Machine is deleted for an outdated size", existing: 5, cached: 3, live: 5, want: 5},
		"Create": {reason: "no Machine is created for an outdated size", existing: 2, cached: 5, live: 2, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStale(t)
			set := w.set(tc.existing)
			w.reconcileAll(set)
			w.resize(set, tc.cached)
			w.api.Cache.Freeze(&clusterv1.MachineSetList{})
			w.resize(set, tc.live)
			w.reconcileAll(set)
			w.wantMachines(tc.want, tc.reason)
		})
	}
}

// TestNamesAreNotReused checks that names of deleted Machines are not reused, and at which cost.
func TestNamesAreNotReused(t *testing.T) {
	w := newStale(t)
	set := w.set(10)
	w.reconcileAll(set)
	used := w.names()
	if _, ok := w.generation(set); ok {
		t.Errorf("the generation annotation is set, but no Machine was deleted")
	}
	for size := int32(9); size >= 7; size-- {
		w.resize(set, size)
		w.reconcileAll(set)
	}
	w.resize(set, 0)
	w.reconcileAll(set)
	if g, _ := w.generation(set); g != "1" {
		t.Errorf("generation %s, want 1: scaling down repeatedly starts one generation", g)
	}
	w.release()
	for round := range 3 {
		w.resize(set, 3)
		w.reconcileAll(set)
		w.wantMachines(3, "round")
		for _, name := range w.names() {
			if slices.Contains(used, name) {
				t.Errorf("round %d: the name %s is reused", round, name)
			}
		}
		used = append(used, w.names()...)
		if round == 1 {
			w.restart()
		}
		for _, m := range w.machines() { // deleted and gone before the next reconcile
			testenv.Must(t, w.Delete(t.Context(), &m))
		}
		if round == 1 {
			w.reconcileAll(set) // the next leader observes the deletions
		}
		w.release()
	}
}

func (w *stale) generation(set *clusterv1.MachineSet) (string, bool) {
	w.Helper()
	testenv.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(set), set))
	g, ok := set.Annotations[generationAnnotation]
	return g, ok
}

// TestOneBadMachine checks that an error with one Machine does not affect others.
func TestOneBadMachine(t *testing.T) {
	w := newStale(t)
	w.orphan("bad", func(m *clusterv1.Machine) {
		m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "unknown.example.com", Kind: "NoSuchMachine", Name: "bad"}
	})
	good := w.orphan("good")
	set := w.set(3)
	for range 4 {
		if err := w.reconcile(set); err == nil {
			t.Error("want an error")
		}
	}
	w.wantMachines(3, "the missing Machine is created")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(good), good); err != nil || good.Labels["tier"] != "one" {
		t.Errorf("labels = %v, err = %v; want the other orphan to be updated", good.Labels, err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil || ptr.Deref(set.Status.Replicas, 0) != 3 {
		t.Errorf("status = %+v, err = %v; want 3 replicas", set.Status, err)
	}
	w.resize(set, 0)
	for range 2 {
		_ = w.reconcile(set) // the error of the bad Machine
	}
	w.wantMachines(0, "all Machines are deleted")
}

// TestObjectsOfDeletedMachine creates no objects for a Machine that was deleted, but is still in the cache.
func TestObjectsOfDeletedMachine(t *testing.T) {
	w := newStale(t)
	set := w.set(1)
	w.reconcileAll(set)
	m := w.machines()[0]
	w.api.Cache.Freeze(&clusterv1.MachineList{})
	testenv.Must(t, w.Delete(t.Context(), &m))
	infra := w.get(&m.Spec.InfrastructureRef)
	testenv.Must(t, w.Delete(t.Context(), infra))
	w.reconcileAll(set)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err == nil {
		t.Error("the infrastructure machine of a Machine that is being deleted was created again")
	}
	w.release()
	w.reconcileAll(set)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(infra), infra); err == nil {
		t.Error("the infrastructure machine of a deleted Machine was created again")
	}
}

// TestReads counts the reads from the API server: three whenever Machines are created or deleted, and none otherwise.
func TestReads(t *testing.T) {
	w := newStale(t)
	set := w.set(3)
	liveReads := []string{"get Cluster c", "get MachineSet s", "list Machine"}
	for _, c := range []struct {
		reason string
		change func()
		want   []string
	}{
		{"three Machines are created at once", func() {}, liveReads},
		{"no Machine has to change", func() { w.change(set, func() { set.Annotations = map[string]string{"note": "x"} }) }, nil},
		{"two are deleted at once", func() { w.resize(set, 1) }, liveReads},
		{"the Machines are being deleted", func() { w.bringUp(&w.machines()[0]) }, nil},
		{"the Machines are gone", w.release, nil},
	} {
		w.api.LiveReads = nil
		c.change()
		w.reconcileAll(set)
		if diff := cmp.Diff(c.want, w.reads(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s, -want +got:\n%s", c.reason, diff)
		}
	}
}

// createdSet returns a set of three that this manager has just created, in a Cluster that it has just written.
func (w *stale) createdSet() *clusterv1.MachineSet {
	w.Helper()
	cluster := &clusterv1.Cluster{}
	testenv.Must(w, w.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: "c"}, cluster))
	set := w.set(3)
	w.recent.Wrote(cluster, w.api.Clock.Now())
	w.recent.Created(set, w.api.Clock.Now())
	return set
}

func (w *stale) later() { w.api.Clock.SetTime(w.api.Clock.Now().Add(5 * time.Second)) }

// TestReadsOfNewSet creates the Machines of a MachineSet that this manager has just created.
func TestReadsOfNewSet(t *testing.T) {
	liveReads := []string{"get Cluster c", "get MachineSet s", "list Machine"}
	for _, c := range []struct {
		reason string
		before func(w *stale, set *clusterv1.MachineSet)
		want   []string
		count  int
	}{
		{"the cache is known to be up to date", func(*stale, *clusterv1.MachineSet) {}, nil, 3},
		{"the writes were too long ago", func(w *stale, _ *clusterv1.MachineSet) { w.later() }, liveReads, 3},
		{"another process continues", func(w *stale, _ *clusterv1.MachineSet) { w.restart() }, liveReads, 3},
		{"the deployment scaled it, which is not in the cache", func(w *stale, set *clusterv1.MachineSet) {
			w.api.Cache.Freeze(&clusterv1.MachineSetList{})
			w.resize(set, 1)
			w.recent.Wrote(set, w.api.Clock.Now())
		}, liveReads[1:2], 0},
		{"the Cluster was paused, which is not in the cache", func(w *stale, _ *clusterv1.MachineSet) {
			w.api.Cache.Freeze(&clusterv1.ClusterList{})
			cluster := &clusterv1.Cluster{}
			testenv.Must(w, w.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: "c"}, cluster))
			cluster.Spec.Paused = ptr.To(true)
			testenv.Must(w, w.Update(w.Context(), cluster))
			w.recent.Wrote(cluster, w.api.Clock.Now())
		}, liveReads[:1], 0},
		{"it has adopted a Machine", func(w *stale, _ *clusterv1.MachineSet) { w.orphan("a") }, append(slices.Clone(liveReads), "get Machine a"), 3},
		{"its names are of another generation", func(w *stale, set *clusterv1.MachineSet) {
			w.change(set, func() { set.Annotations = map[string]string{generationAnnotation: "1"} })
		}, liveReads, 3},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newStale(t)
			set := w.createdSet()
			c.before(w, set)
			w.api.LiveReads = nil
			testenv.Must(t, w.reconcile(set))
			if diff := cmp.Diff(c.want, w.reads(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("read, -want +got:\n%s", diff)
			}
			w.wantMachines(c.count, c.reason)
		})
	}
}

// late is a cache that gets Machines after they were listed.
type late struct {
	client.Client
	api client.Reader
}

func (l late) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return early{l.Client}.List(ctx, into, opts...)
}

func (l late) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, ok := into.(*clusterv1.Machine); ok {
		return l.api.Get(ctx, key, into, opts...)
	}
	return l.Client.Get(ctx, key, into, opts...)
}

// TestNewSetWithLateCache has Machines in the cache that were not there when they were listed: there are more than were counted.
func TestNewSetWithLateCache(t *testing.T) {
	w := newStale(t)
	set := w.createdSet()
	w.reconcileAll(set)
	w.wantMachines(3, "they are created")
	w.restartController(func(o *step.Clients) { o.Client = late{Client: o.Client, api: w.Client} })
	testenv.Must(t, w.reconcile(set))
	w.wantMachines(3, "names that are taken are not skipped")
}

// early is a reader that listed Machines before they were created.
type early struct{ client.Reader }

func (e early) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if _, ok := into.(*clusterv1.MachineList); ok {
		return nil
	}
	return e.Reader.List(ctx, into, opts...)
}

// TestMachinesOfAnotherLeader has Machines that another leader created after they were listed from the API server.
func TestMachinesOfAnotherLeader(t *testing.T) {
	w := newStale(t)
	set := w.set(3)
	w.reconcileAll(set)
	w.wantMachines(3, "they are created")
	w.restart()
	w.restartController(func(o *step.Clients) {
		o.Client, o.Live = late{Client: o.Client, api: w.Client}, early{o.Live}
	})
	testenv.Must(t, w.reconcile(set))
	w.wantMachines(3, "names that are taken are not skipped")
}

// TestNewSetWithStaleCache creates the Machines of a MachineSet that this manager has just created, with a cache that does not
// get the Machines.
func TestNewSetWithStaleCache(t *testing.T) {
	w := newStale(t)
	w.api.Cache.Freeze(&clusterv1.MachineList{})
	set := w.createdSet()
	w.reconcileAll(set)
	w.wantMachines(3, "they are created once")
	first := w.names()
	w.restartController()
	w.reconcileAll(set)
	if diff := cmp.Diff(first, w.names()); diff != "" {
		t.Errorf("without a record of the names in use, creating them again is a conflict, -want +got:\n%s", diff)
	}
	deleted := w.machines()[0]
	testenv.Must(t, w.Delete(t.Context(), &deleted))
	w.release()
	w.reconcileAll(set)
	w.wantMachines(3, "a Machine that a user deleted is replaced, and no other")
	w.resize(set, 1)
	w.api.LiveReads = nil
	w.reconcileAll(set)
	w.wantMachines(1, "the desired replicas")
	reads := w.reads()
	if !slices.Contains(reads, "get Cluster c") || !slices.Contains(reads, "get MachineSet s") || !slices.Contains(reads, "list Machine") {
		t.Errorf("reads = %v; want Cluster, MachineSet and Machines before Machines are deleted, even for a new set", reads)
	}
}

// TestPausedWithStaleCache creates no Machines for a Cluster that is paused, for example because it is being moved.
func TestPausedWithStaleCache(t *testing.T) {
	w := newStale(t)
	set := w.set(1)
	w.api.Cache.Freeze(&clusterv1.ClusterList{})
	cluster := &clusterv1.Cluster{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "c"}, cluster))
	cluster.Spec.Paused = ptr.To(true)
	testenv.Must(t, w.Update(t.Context(), cluster))
	w.reconcileAll(set)
	w.wantMachines(0, "the Cluster is paused, but not in the cache")
}

// TestNothingIsDoneWithStaleCache does not change Machines of a Cluster that is paused, but not in the cache.
func TestNothingIsDoneWithStaleCache(t *testing.T) {
	w := newStale(t)
	set := w.set(2)
	w.reconcileAll(set)
	sick := w.machines()[0]
	remediated := condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, "")
	remediated.LastTransitionTime = metav1.Now()
	condition.Set(&sick, remediated)
	testenv.Must(t, w.Status().Update(t.Context(), &sick))
	w.api.Cache.Freeze(&clusterv1.ClusterList{})
	cluster := &clusterv1.Cluster{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "c"}, cluster))
	cluster.Spec.Paused = ptr.To(true)
	testenv.Must(t, w.Update(t.Context(), cluster))
	w.change(set, func() {
		set.Spec.Replicas = ptr.To[int32](3)
		set.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
	})
	before := w.machines()
	w.reconcileAll(set)
	if diff := cmp.Diff(before, w.machines()); diff != "" {
		t.Errorf("the Cluster is paused, and its Machines were changed, -want +got:\n%s", diff)
	}
}

// TestRemediationWithStaleCache does not delete a Machine that has recovered.
func TestRemediationWithStaleCache(t *testing.T) {
	w := newStale(t)
	set := w.set(1)
	w.reconcileAll(set)
	m := w.machines()[0]
	w.api.Cache.Freeze(&clusterv1.MachineList{})
	sick := m.DeepCopy()
	condition.Set(sick, condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, ""))
	w.api.Cache.Show(sick)
	w.bringUp(&m)
	w.reconcileAll(set)
	w.wantMachines(1, "the Machine has changed since it was marked for remediation")
}

// TestFailedAdoption reports an orphan that cannot be adopted, and adopts the others.
func TestFailedAdoption(t *testing.T) {
	w := newStale(t)
	w.orphan("rejected", func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = ptr.To("") })
	w.api.Before = func(r fakeapi.Request) error {
		if r.Verb == "patch" && r.Name == "rejected" {
			return apierrors.NewForbidden(clusterv1.Resource("machines"), r.Name, errors.New("a policy forbids it"))
		}
		return nil
	}
	w.orphan("adopted")
	set := w.set(3)
	for range 2 {
		if err := w.reconcile(set); err == nil {
			t.Error("want an error")
		}
	}
	w.wantMachines(3, "the rejected orphan counts as a replica")
	reported := false
	for _, event := range w.api.Events() {
		reported = reported || strings.HasPrefix(event, "Warning FailedAdopt Failed to adopt Machine \"rejected\"")
	}
	if !reported {
		t.Error("no event reports the failure")
	}
}

// TestNamesOfInfrastructure: with the flag, infrastructure machines are named after their template, and an interrupted creation is
// continued without it.
func TestNamesOfInfrastructure(t *testing.T) {
	w := newStale(t)
	w.controller.namedAfterTemplates = true
	set := w.set(2)
	w.reconcileAll(set)
	w.controller.namedAfterTemplates = false
	for _, m := range w.machines() {
		ref := m.Spec.InfrastructureRef
		if !strings.HasPrefix(ref.Name, "small-") || m.Spec.Bootstrap.ConfigRef.Name != m.Name {
			t.Errorf("Machine %s has infrastructure %s and bootstrap config %s", m.Name, ref.Name, m.Spec.Bootstrap.ConfigRef.Name)
		}
		testenv.Must(t, w.Delete(t.Context(), w.get(&ref)))
	}
	w.reconcileAll(set)
	for _, m := range w.machines() {
		w.get(&m.Spec.InfrastructureRef)
	}
	w.wantMachines(2, "the names do not change with the flag")
}
