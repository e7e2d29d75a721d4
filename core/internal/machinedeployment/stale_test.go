package machinedeployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// stale is a world whose controller runs only when the test says so, on a cache as old as the test wants. There is no
// controller of MachineSets: their Machines are what the test makes them.
type stale struct {
	*world
	live   client.WithWatch
	cache  *testworld.Stale
	events *record.FakeRecorder
	reads  []string
	before func() // each read
	// recent is what the manager knows of its writes; clock is that of it.
	recent *step.Recent
	clock  *testclock.FakePassiveClock
}

func newStale(t *testing.T) *stale {
	t.Helper()
	e := server.Start(t, "config/core/crd", "config/infrastructure-in-memory/crd")
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), clusterv1.AddToScheme(s), apiextensionsv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	direct := e.NewClient(t, s)
	w := &stale{world: &world{T: t, Client: direct, namespace: e.Namespace(t)}, events: record.NewFakeRecorder(1000)}
	w.live = interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			w.note("get", obj)
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			w.note("list", list)
			return c.List(ctx, list, opts...)
		},
	})
	w.cache = testworld.NewStale(t, direct, w.namespace)
	w.clock = testclock.NewFakePassiveClock(time.Now())
	w.recent = step.NewRecent(5*time.Second, w.clock)
	w.make(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c"}})
	w.makeTemplate("small")
	return w
}

func (w *stale) note(verb string, obj runtime.Object) {
	if kind := fmt.Sprintf("%T", obj); !strings.Contains(kind, "CustomResourceDefinition") {
		w.reads = append(w.reads, verb+" "+strings.TrimPrefix(kind, "*v1beta1."))
		if w.before != nil {
			w.before()
		}
	}
}

// reconcile runs a manager, until nothing more happens. All that it remembers is what the API server answered.
func (w *stale) reconcile(md *clusterv1.MachineDeployment) {
	w.Helper()
	for range 4 {
		if err := w.reconcileOnce(md); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *stale) reconcileOnce(md *clusterv1.MachineDeployment) error {
	c := newController(step.Outside{Client: w.cache, Live: w.live, Recorder: w.events, Clock: clock.RealClock{}, Recent: w.recent})
	c.visibilityTimeout = 0 // frozen caches do not move
	_, err := c.declared().Runner(c.Outside).Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(md)})
	return err
}

// fill gives a MachineSet as many Machines as it is to have, all available.
func (w *stale) fill(set *clusterv1.MachineSet) {
	w.Helper()
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		w.Fatal(err)
	}
	have := w.machinesOf(set)
	for i := len(have); i < int(*set.Spec.Replicas); i++ {
		m := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, GenerateName: set.Name + "-", Labels: set.Spec.Template.Labels, Finalizers: []string{clusterv1.MachineFinalizer},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind(machineSetKind))},
			},
			Spec: set.Spec.Template.Spec,
		}
		w.make(m)
		w.setHealthy(m, true)
	}
	for i := int(*set.Spec.Replicas); i < len(have); i++ {
		w.remove(&have[i])
	}
}

func (w *stale) setHealthy(m *clusterv1.Machine, healthy bool) {
	w.Helper()
	before := m.DeepCopy()
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name}
	state := condition.True(clusterv1.MachineNodeHealthyCondition)
	if !healthy {
		state = condition.False(clusterv1.MachineNodeHealthyCondition, clusterv1.ConditionSeverityWarning, clusterv1.NodeConditionsFailedReason, "")
	}
	condition.Set(m, state)
	condition.Stamp(m, nil, time.Now())
	if err := w.Status().Patch(w.Context(), m, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// remove deletes a Machine and lets it go at once.
func (w *stale) remove(m *clusterv1.Machine) {
	w.Helper()
	before := m.DeepCopy()
	m.Finalizers = nil
	if err := errors.Join(w.Delete(w.Context(), m.DeepCopy()), w.Patch(w.Context(), m, client.MergeFrom(before))); err != nil {
		w.Fatal(err)
	}
}

func (w *stale) machinesOf(set *clusterv1.MachineSet) []clusterv1.Machine {
	w.Helper()
	var out []clusterv1.Machine
	for _, m := range w.machines() {
		if metav1.IsControlledBy(&m, set) {
			out = append(out, m)
		}
	}
	return out
}

// sizes are the replicas of the MachineSets, by revision.
func (w *stale) sizes() string {
	w.Helper()
	var out []string
	for _, set := range w.sets() {
		out = append(out, fmt.Sprint(*set.Spec.Replicas))
	}
	return strings.Join(out, " ")
}

func (w *stale) want(sizes, reason string) {
	w.Helper()
	if got := w.sizes(); got != sizes {
		w.Fatalf("%s: the MachineSets have %s replicas, want %s", reason, got, sizes)
	}
}

// rolling is a rollout of three Machines, of which one is of the new template.
func (w *stale) rolling(change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	w.Helper()
	md := w.deployment(3, change...)
	w.reconcile(md)
	w.want("3", "the first set")
	w.fill(&w.sets()[0])
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.want("3 1", "one more than wanted may exist")
	return md
}

// advance lets a rollout go one move on.
func (w *stale) advance(md *clusterv1.MachineDeployment) {
	w.Helper()
	for _, set := range w.sets() {
		w.fill(&set)
	}
	w.reconcile(md)
}

func (w *stale) freezeAll() {
	w.cache.Freeze(&clusterv1.MachineDeploymentList{})
	w.cache.Freeze(&clusterv1.MachineSetList{})
	w.cache.Freeze(&clusterv1.MachineList{})
}

// TestOldViewOfRollout has a rollout go on by one leader, and then another one act on what was there before.
func TestOldViewOfRollout(t *testing.T) {
	w := newStale(t)
	md := w.rolling()
	for _, set := range w.sets() {
		w.fill(&set)
	}
	old := testworld.NewStale(t, w.Client, w.namespace)
	former := w.cache
	w.cache = old
	w.freezeAll() // three old Machines and a new one, all available: an old one can go
	w.cache = former
	for range 4 {
		w.advance(md)
	}
	w.want("1 3", "the rollout went on")
	w.cache = old
	for range 3 {
		_ = w.reconcileOnce(md) // that it acted on an old copy is an error
	}
	w.want("1 3", "what was lowered is not raised again")
}

// TestOldViewOfMachines does not give up an old Machine for a new one that is not available any more.
func TestOldViewOfMachines(t *testing.T) {
	w := newStale(t)
	md := w.rolling()
	young := w.sets()[1]
	w.fill(&young)
	w.cache.Freeze(&clusterv1.MachineList{})
	w.setHealthy(&w.machinesOf(&young)[0], false)
	w.reconcile(md)
	w.want("3 1", "three have to be available")
	w.setHealthy(&w.machinesOf(&young)[0], true)
	w.reconcile(md)
	w.want("2 1", "now they are")
}

// TestOldStatusOfMachineSets does not count on a status that was not written yet, or for long.
func TestOldStatusOfMachineSets(t *testing.T) {
	w := newStale(t)
	md := w.rolling()
	for _, set := range w.sets() {
		before := set.DeepCopy()
		set.Status.Replicas, set.Status.AvailableReplicas, set.Status.ReadyReplicas = 0, 3, 3
		set.Status.ObservedGeneration = set.Generation
		if err := w.Client.Status().Patch(t.Context(), &set, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	w.reconcile(md)
	w.want("3 1", "the new set has no Machine yet, whatever its status says")
}

// TestOldViewOfMachineSets finds the set of the template although the cache does not show it.
func TestOldViewOfMachineSets(t *testing.T) {
	w := newStale(t)
	w.cache.Freeze(&clusterv1.MachineSetList{})
	labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
	md := w.deployment(2)
	w.make(&clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "restored", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(md, clusterv1.GroupVersion.WithKind(machineDeploymentKind))}},
		Spec: clusterv1.MachineSetSpec{ClusterName: "c", Replicas: ptr.To(int32(2)), Selector: metav1.LabelSelector{MatchLabels: labels}, Template: md.Spec.Template},
	})
	w.reconcile(md)
	if sets := w.sets(); len(sets) != 1 || sets[0].Name != "restored" {
		t.Errorf("there are %d MachineSets of one template", len(sets))
	}
}

// TestOldViewOfDeployment does nothing for a size, a template or a deployment of the past.
func TestOldViewOfDeployment(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		now    func(w *stale, md *clusterv1.MachineDeployment)
	}{
		"Size": {"the size was taken back", func(w *stale, md *clusterv1.MachineDeployment) {
			w.change(md, func() { md.Spec.Replicas = ptr.To(int32(3)) })
		}},
		"Template": {"the template was taken back", func(w *stale, md *clusterv1.MachineDeployment) { w.change(md, version(md, "v1.30.0")) }},
		"Paused": {"it was paused", func(w *stale, md *clusterv1.MachineDeployment) {
			w.change(md, func() { md.Annotations[clusterv1.PausedAnnotation] = "" })
		}},
		"Gone": {"it is gone", func(w *stale, md *clusterv1.MachineDeployment) {
			if err := w.Delete(w.Context(), md); err != nil {
				w.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStale(t)
			md := w.deployment(3)
			w.reconcile(md)
			w.fill(&w.sets()[0])
			w.change(md, func() {
				md.Spec.Replicas = ptr.To(int32(5))
				md.Spec.Template.Spec.Version = ptr.To("v1.30.1")
			})
			if name == "Size" {
				w.change(md, version(md, "v1.30.0"))
			}
			if name == "Template" {
				w.change(md, func() { md.Spec.Replicas = ptr.To(int32(3)) })
			}
			w.cache.Freeze(&clusterv1.MachineDeploymentList{})
			c.now(w, md)
			for range 3 {
				_ = w.reconcileOnce(md) // its status may have nowhere to go
			}
			for _, set := range w.sets() {
				if *set.Spec.Replicas != 3 || *set.Spec.Template.Spec.Version != "v1.30.0" {
					t.Errorf("%s: a MachineSet has %d replicas of %s", c.reason, *set.Spec.Replicas, *set.Spec.Template.Spec.Version)
				}
			}
		})
	}
}

// TestOldViewOnDelete does not take the replicas of Machines that the cache lacks.
func TestOldViewOnDelete(t *testing.T) {
	w := newStale(t)
	md := w.deployment(3, func(md *clusterv1.MachineDeployment) {
		md.Spec.Strategy = &clusterv1.MachineDeploymentStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}
	})
	w.reconcile(md)
	w.cache.Freeze(&clusterv1.MachineList{})
	w.fill(&w.sets()[0])
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.want("3 0", "nobody deleted an old Machine")
}

// TestTrimming keeps a former MachineSet as long as it has a Machine, whatever cache and status say.
func TestTrimming(t *testing.T) {
	w := newStale(t)
	md := w.deployment(1, func(md *clusterv1.MachineDeployment) { md.Spec.RevisionHistoryLimit = ptr.To(int32(0)) })
	w.reconcile(md)
	first := w.sets()[0]
	w.fill(&first)
	lingering := w.machinesOf(&first)[0]
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.fill(&w.sets()[1])
	w.reconcile(md)
	w.want("0 1", "the new one carries all")
	w.cache.Freeze(&clusterv1.MachineList{})
	w.cache.Hide(&lingering)
	w.reconcile(md)
	w.want("0 1", "a Machine that the cache lacks keeps its set")
	w.cache.Thaw()
	if err := w.Delete(t.Context(), lingering.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.reconcile(md)
	w.want("0 1", "so does one that is being deleted")
	before := lingering.DeepCopy()
	lingering.Finalizers = nil
	if err := w.Patch(t.Context(), &lingering, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.reconcile(md)
	w.want("1", "then the set goes")
}

// TestReads counts what is read past the cache.
func TestReads(t *testing.T) {
	w := newStale(t)
	md := w.deployment(1)
	for _, c := range []struct {
		reason string
		change func()
		want   string
	}{
		{"the first set is made", func() {}, "list MachineSetList, get MachineDeployment"},
		{"its Machine comes up", func() { w.fill(&w.sets()[0]) }, ""},
		{"it grows", func() {
			w.change(md, func() { md.Spec.Replicas = ptr.To(int32(2)) })
			w.recent.Saw(md, w.clock.Now())
		}, "list MachineSetList, list MachineList, get MachineDeployment"},
	} {
		w.reads = nil
		c.change()
		w.reconcile(md)
		if got := strings.Join(w.reads, ", "); got != c.want {
			t.Errorf("%s: read %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestReadsAfterAnAnswer makes the first MachineSet of a MachineDeployment that this manager has written itself.
func TestReadsAfterAnAnswer(t *testing.T) {
	for _, c := range []struct {
		reason string
		then   func(w *stale, md *clusterv1.MachineDeployment)
		want   string
		sets   string
	}{
		{"a moment ago: the cached copy is no older", func(*stale, *clusterv1.MachineDeployment) {}, "list MachineSetList", "3"},
		{"too long ago", func(w *stale, _ *clusterv1.MachineDeployment) { w.clock.SetTime(w.clock.Now().Add(5 * time.Second)) },
			"list MachineSetList, get MachineDeployment", "3"},
		{"but it is gone together with its MachineSets, which the cache does not show", func(w *stale, md *clusterv1.MachineDeployment) {
			w.reconcile(md)
			w.cache.Freeze(&clusterv1.MachineDeploymentList{})
			for _, set := range w.sets() {
				if err := w.Delete(w.Context(), &set); err != nil {
					w.Fatal(err)
				}
			}
			if err := w.Delete(w.Context(), md); err != nil {
				w.Fatal(err)
			}
		}, "list MachineSetList, get MachineDeployment", ""},
		{"and written again since, which the cache does not show", func(w *stale, md *clusterv1.MachineDeployment) {
			w.cache.Freeze(&clusterv1.MachineDeploymentList{})
			w.change(md, func() { md.Spec.Replicas = ptr.To(int32(1)) })
			w.recent.Saw(md, w.clock.Now())
		}, "list MachineSetList, get MachineDeployment", ""},
		{"but it was made for MachineSets that were there, which the cache lacks", func(w *stale, md *clusterv1.MachineDeployment) {
			w.cache.Freeze(&clusterv1.MachineSetList{})
			labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
			w.make(&clusterv1.MachineSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orphan", Labels: labels},
				Spec:       clusterv1.MachineSetSpec{ClusterName: "c", Replicas: ptr.To(int32(2)), Selector: metav1.LabelSelector{MatchLabels: labels}, Template: md.Spec.Template},
			})
		}, "list MachineSetList, list MachineList, get MachineDeployment", "3"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newStale(t)
			md := w.deployment(3)
			w.recent.Saw(md, w.clock.Now())
			c.then(w, md)
			w.reads = nil
			if err := w.reconcileOnce(md); err != nil && !step.IsStale(err) {
				t.Fatal(err)
			}
			if got := strings.Join(w.reads, ", "); got != c.want {
				t.Errorf("read %s, want %s", got, c.want)
			}
			w.want(c.sets, c.reason)
		})
	}
}

// TestFailedAdoption tells of a MachineSet that cannot be adopted.
func TestFailedAdoption(t *testing.T) {
	w := newStale(t)
	labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
	md := w.deployment(1)
	w.make(&clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orphan", Labels: labels},
		Spec:       clusterv1.MachineSetSpec{ClusterName: "c", Replicas: ptr.To(int32(1)), Selector: metav1.LabelSelector{MatchLabels: labels}, Template: md.Spec.Template},
	})
	w.cache.Client = interceptor.NewClient(w.live, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return apierrors.NewForbidden(clusterv1.Resource("machinesets"), "orphan", errors.New("a policy forbids it"))
		},
	})
	if err := w.reconcileOnce(md); err == nil {
		t.Error("the trouble is reported")
	}
	if event := <-w.events.Events; !strings.HasPrefix(event, `Warning FailedAdopt Failed to write MachineSet "orphan"`) {
		t.Errorf("the event is %s", event)
	}
}

// TestChangedByOthers has a webhook of somebody else change MachineSets as they are made.
func TestChangedByOthers(t *testing.T) {
	w := newStale(t)
	w.normalised()
	md := w.deployment(1)
	for range 3 {
		w.reconcile(md)
	}
	sets := w.sets()
	if len(sets) != 1 || ptr.Deref(sets[0].Spec.Template.Spec.FailureDomain, "") != "normalized" {
		t.Fatalf("there are %d MachineSets, want one, as the webhook has it", len(sets))
	}
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.want("1 1", "another template leads to another one")

	sets = w.sets()
	sets[1].Spec.Template.Spec.FailureDomain = ptr.To("elsewhere")
	if err := w.Update(t.Context(), &sets[1]); err != nil {
		t.Fatal(err)
	}
	w.reconcile(md)
	if n := len(w.sets()); n != 3 {
		t.Errorf("there are %d MachineSets, want a third: somebody changed what the second one makes", n)
	}
}

// normalised has a webhook rewrite what is applied.
func (w *stale) normalised() {
	w.Helper()
	direct, ok := w.Client.(client.WithWatch)
	if !ok {
		w.Fatalf("%T cannot watch", w.Client)
	}
	w.cache.Client = interceptor.NewClient(direct, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			raw, err := json.Marshal(config)
			if err != nil {
				return err
			}
			u := &unstructured.Unstructured{}
			if err := errors.Join(u.UnmarshalJSON(raw), unstructured.SetNestedField(u.Object, "normalized", "spec", "template", "spec", "failureDomain")); err != nil {
				return err
			}
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...); err != nil {
				return err
			}
			if raw, err = json.Marshal(u); err != nil {
				return err
			}
			return json.Unmarshal(raw, config)
		},
	})
}

// TestNormalisedSetsAreReadOnce: what a webhook makes of MachineSets differs for ever, and is no reason to ask for ever.
func TestNormalisedSetsAreReadOnce(t *testing.T) {
	w := newStale(t)
	w.normalised()
	md := w.deployment(1)
	c := newController(step.Outside{Client: w.cache, Live: w.live, Recorder: w.events, Clock: clock.RealClock{}})
	runner := c.declared().Runner(c.Outside)
	reconcile := func() {
		t.Helper()
		if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(md)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		reconcile()
	}
	w.reads = nil
	for range 4 {
		reconcile()
	}
	if got := strings.Join(w.reads, ", "); got != "" {
		t.Errorf("read %s from the API server while nothing happens, want nothing", got)
	}
}

// TestWriteInBetween has somebody lower a MachineSet after it was read from the API server.
func TestWriteInBetween(t *testing.T) {
	w := newStale(t)
	md := w.rolling()
	for _, set := range w.sets() {
		w.fill(&set)
	}
	w.reads = nil
	w.before = func() {
		if len(w.reads) != 3 {
			return // not yet: the last of the three reads is the one of Machines
		}
		set := w.sets()[0]
		set.Spec.Replicas = ptr.To(int32(1))
		if err := w.Update(t.Context(), &set); err != nil {
			t.Error(err)
		}
	}
	_ = w.reconcileOnce(md) // it acted on an old copy
	if got := *w.sets()[0].Spec.Replicas; got != 1 {
		t.Errorf("the old set has %d replicas, want 1: it is not raised again", got)
	}
}
