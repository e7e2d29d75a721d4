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

// stale is a world whose controller runs only on request and reads from a cache that may be stale. There is no MachineSet
// controller: tests create the Machines.
type stale struct {
	*world
	live   client.WithWatch
	cache  *testworld.Stale
	events *record.FakeRecorder
	reads  []string
	before func() // each read
	// recent records the writes of the manager, with the times of clock.
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
			w.recordRead("get", obj)
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			w.recordRead("list", list)
			return c.List(ctx, list, opts...)
		},
	})
	w.cache = testworld.NewStale(t, direct, w.namespace)
	w.clock = testclock.NewFakePassiveClock(time.Now())
	w.recent = step.NewRecent(5*time.Second, w.clock)
	w.create(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c"}})
	w.createTemplate("small")
	return w
}

func (w *stale) recordRead(verb string, obj runtime.Object) {
	if kind := fmt.Sprintf("%T", obj); !strings.Contains(kind, "CustomResourceDefinition") {
		w.reads = append(w.reads, verb+" "+strings.TrimPrefix(kind, "*v1beta1."))
		if w.before != nil {
			w.before()
		}
	}
}

// reconcile runs new controllers, which share only recent, often enough to make all writes.
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
	c.visibilityTimeout = 0 // a frozen cache never has the writes
	_, err := c.declared().Runner(c.Outside).Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(md)})
	return err
}

// fill creates and deletes Machines of a MachineSet until there are spec.replicas of them; new ones are available.
func (w *stale) fill(set *clusterv1.MachineSet) {
	w.Helper()
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		w.Fatal(err)
	}
	existing := w.machinesOf(set)
	for i := len(existing); i < int(*set.Spec.Replicas); i++ {
		m := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, GenerateName: set.Name + "-", Labels: set.Spec.Template.Labels, Finalizers: []string{clusterv1.MachineFinalizer},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind(machineSetKind))},
			},
			Spec: set.Spec.Template.Spec,
		}
		w.create(m)
		w.setHealthy(m, true)
	}
	for i := int(*set.Spec.Replicas); i < len(existing); i++ {
		w.remove(&existing[i])
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

// remove deletes a Machine and its finalizers.
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

// sizes returns the replicas of the MachineSets, sorted by revision.
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

// rolling starts a rollout of three Machines; the new set has one replica.
func (w *stale) rolling(change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	w.Helper()
	md := w.deployment(3, change...)
	w.reconcile(md)
	w.want("3", "the first set")
	w.fill(&w.sets()[0])
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.want("3 1", "maxSurge permits one more Machine")
	return md
}

// advance makes one move of a rollout.
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

// TestStaleRollout has one leader continue a rollout, and then another leader reconcile with a stale cache.
func TestStaleRollout(t *testing.T) {
	w := newStale(t)
	md := w.rolling()
	for _, set := range w.sets() {
		w.fill(&set)
	}
	old := testworld.NewStale(t, w.Client, w.namespace)
	current := w.cache
	w.cache = old
	w.freezeAll() // three old Machines and a new one, all available: an old one can be deleted
	w.cache = current
	for range 4 {
		w.advance(md)
	}
	w.want("1 3", "the rollout continued")
	w.cache = old
	for range 3 {
		_ = w.reconcileOnce(md) // an error due to the stale cache
	}
	w.want("1 3", "a set that was scaled down is not scaled up again")
}

// TestStaleMachines does not delete an old Machine for a new one that is no longer available.
func TestStaleMachines(t *testing.T) {
	w := newStale(t)
	md := w.rolling()
	young := w.sets()[1]
	w.fill(&young)
	w.cache.Freeze(&clusterv1.MachineList{})
	w.setHealthy(&w.machinesOf(&young)[0], false)
	w.reconcile(md)
	w.want("3 1", "three Machines must be available")
	w.setHealthy(&w.machinesOf(&young)[0], true)
	w.reconcile(md)
	w.want("2 1", "three Machines are available without the old one")
}

// TestStatusOfMachineSetsIsNotUsed has MachineSets with an outdated status.
func TestStatusOfMachineSetsIsNotUsed(t *testing.T) {
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
	w.want("3 1", "the new set has no Machine yet, despite its status")
}

// TestStaleMachineSets finds the set of the template although it is not in the cache.
func TestStaleMachineSets(t *testing.T) {
	w := newStale(t)
	w.cache.Freeze(&clusterv1.MachineSetList{})
	labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
	md := w.deployment(2)
	w.create(&clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "restored", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(md, clusterv1.GroupVersion.WithKind(machineDeploymentKind))}},
		Spec: clusterv1.MachineSetSpec{ClusterName: "c", Replicas: ptr.To(int32(2)), Selector: metav1.LabelSelector{MatchLabels: labels}, Template: md.Spec.Template},
	})
	w.reconcile(md)
	if sets := w.sets(); len(sets) != 1 || sets[0].Name != "restored" {
		t.Errorf("there are %d MachineSets of one template, want the restored one", len(sets))
	}
}

// TestStaleDeployment has an outdated size, template or deployment in the cache.
func TestStaleDeployment(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		change func(w *stale, md *clusterv1.MachineDeployment)
	}{
		"Size": {"the size was reverted", func(w *stale, md *clusterv1.MachineDeployment) {
			w.change(md, func() { md.Spec.Replicas = ptr.To(int32(3)) })
		}},
		"Template": {"the template was reverted", func(w *stale, md *clusterv1.MachineDeployment) { w.change(md, version(md, "v1.30.0")) }},
		"Paused": {"the deployment was paused", func(w *stale, md *clusterv1.MachineDeployment) {
			w.change(md, func() { md.Annotations[clusterv1.PausedAnnotation] = "" })
		}},
		"Deleted": {"the deployment was deleted", func(w *stale, md *clusterv1.MachineDeployment) {
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
			c.change(w, md)
			for range 3 {
				_ = w.reconcileOnce(md) // updating the status of a deleted object fails
			}
			for _, set := range w.sets() {
				if *set.Spec.Replicas != 3 || *set.Spec.Template.Spec.Version != "v1.30.0" {
					t.Errorf("%s: a MachineSet has %d replicas of %s", c.reason, *set.Spec.Replicas, *set.Spec.Template.Spec.Version)
				}
			}
		})
	}
}

// TestStaleMachinesOnDelete does not remove the replicas of Machines that are not in the cache.
func TestStaleMachinesOnDelete(t *testing.T) {
	w := newStale(t)
	md := w.deployment(3, func(md *clusterv1.MachineDeployment) {
		md.Spec.Strategy = &clusterv1.MachineDeploymentStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}
	})
	w.reconcile(md)
	w.cache.Freeze(&clusterv1.MachineList{})
	w.fill(&w.sets()[0])
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.want("3 0", "no old Machine was deleted")
}

// TestHistoryLimit keeps an old MachineSet while it has a Machine in the API server.
func TestHistoryLimit(t *testing.T) {
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
	w.want("0 1", "the rollout is complete")
	w.cache.Freeze(&clusterv1.MachineList{})
	w.cache.Hide(&lingering)
	w.reconcile(md)
	w.want("0 1", "a Machine that is not in the cache keeps its set")
	w.cache.Thaw()
	if err := w.Delete(t.Context(), lingering.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.reconcile(md)
	w.want("0 1", "a Machine that is being deleted keeps its set")
	before := lingering.DeepCopy()
	lingering.Finalizers = nil
	if err := w.Patch(t.Context(), &lingering, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.reconcile(md)
	w.want("1", "the set is deleted after its last Machine")
}

// TestReads counts the reads from the API server.
func TestReads(t *testing.T) {
	w := newStale(t)
	md := w.deployment(1)
	for _, c := range []struct {
		reason string
		change func()
		want   string
	}{
		{"the first set is created", func() {}, "list MachineSetList, get MachineDeployment"},
		{"its Machine becomes available", func() { w.fill(&w.sets()[0]) }, ""},
		{"the deployment is scaled up", func() {
			w.change(md, func() { md.Spec.Replicas = ptr.To(int32(2)) })
			w.recent.Wrote(md, w.clock.Now())
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

// TestReadsAfterOwnWrite creates the first MachineSet of a MachineDeployment that this manager has written itself.
func TestReadsAfterOwnWrite(t *testing.T) {
	for _, c := range []struct {
		reason string
		before func(w *stale, md *clusterv1.MachineDeployment)
		want   string
		sets   string
	}{
		{"written a moment ago, so the cached copy is not older", func(*stale, *clusterv1.MachineDeployment) {}, "list MachineSetList", "3"},
		{"written too long ago", func(w *stale, _ *clusterv1.MachineDeployment) { w.clock.SetTime(w.clock.Now().Add(5 * time.Second)) },
			"list MachineSetList, get MachineDeployment", "3"},
		{"deleted since, together with its MachineSets, which is not in the cache", func(w *stale, md *clusterv1.MachineDeployment) {
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
		{"updated since, which is not in the cache", func(w *stale, md *clusterv1.MachineDeployment) {
			w.cache.Freeze(&clusterv1.MachineDeploymentList{})
			w.change(md, func() { md.Spec.Replicas = ptr.To(int32(1)) })
			w.recent.Wrote(md, w.clock.Now())
		}, "list MachineSetList, get MachineDeployment", ""},
		{"created for existing MachineSets, which are not in the cache", func(w *stale, md *clusterv1.MachineDeployment) {
			w.cache.Freeze(&clusterv1.MachineSetList{})
			labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
			w.create(&clusterv1.MachineSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orphan", Labels: labels},
				Spec:       clusterv1.MachineSetSpec{ClusterName: "c", Replicas: ptr.To(int32(2)), Selector: metav1.LabelSelector{MatchLabels: labels}, Template: md.Spec.Template},
			})
		}, "list MachineSetList, list MachineList, get MachineDeployment", "3"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newStale(t)
			md := w.deployment(3)
			w.recent.Wrote(md, w.clock.Now())
			c.before(w, md)
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

// TestFailedAdoption reports a MachineSet that cannot be adopted.
func TestFailedAdoption(t *testing.T) {
	w := newStale(t)
	labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
	md := w.deployment(1)
	w.create(&clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orphan", Labels: labels},
		Spec:       clusterv1.MachineSetSpec{ClusterName: "c", Replicas: ptr.To(int32(1)), Selector: metav1.LabelSelector{MatchLabels: labels}, Template: md.Spec.Template},
	})
	w.cache.Client = interceptor.NewClient(w.live, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return apierrors.NewForbidden(clusterv1.Resource("machinesets"), "orphan", errors.New("a policy forbids it"))
		},
	})
	if err := w.reconcileOnce(md); err == nil {
		t.Error("want an error")
	}
	if event := <-w.events.Events; !strings.HasPrefix(event, `Warning FailedAdopt Failed to update MachineSet "orphan"`) {
		t.Errorf("event = %s", event)
	}
}

// TestChangedByWebhook has a webhook of another vendor change MachineSets during creation.
func TestChangedByWebhook(t *testing.T) {
	w := newStale(t)
	w.rewriteApplied()
	md := w.deployment(1)
	for range 3 {
		w.reconcile(md)
	}
	sets := w.sets()
	if len(sets) != 1 || ptr.Deref(sets[0].Spec.Template.Spec.FailureDomain, "") != "normalized" {
		t.Fatalf("there are %d MachineSets, want one, as changed by the webhook", len(sets))
	}
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.want("1 1", "another template leads to another set")

	sets = w.sets()
	sets[1].Spec.Template.Spec.FailureDomain = ptr.To("elsewhere")
	if err := w.Update(t.Context(), &sets[1]); err != nil {
		t.Fatal(err)
	}
	w.reconcile(md)
	if n := len(w.sets()); n != 3 {
		t.Errorf("there are %d MachineSets, want a third: a user changed the template of the second one", n)
	}
}

// rewriteApplied simulates a webhook that changes applied objects.
func (w *stale) rewriteApplied() {
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

// TestRewrittenSetsAreReadOnce has a webhook that changes MachineSets. They always differ from the desired state, but must not be
// read from the API server in every reconcile.
func TestRewrittenSetsAreReadOnce(t *testing.T) {
	w := newStale(t)
	w.rewriteApplied()
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
		t.Errorf("read %s from the API server although nothing changed, want nothing", got)
	}
}

// TestConcurrentWrite scales a MachineSet down after the controller has read it from the API server.
func TestConcurrentWrite(t *testing.T) {
	w := newStale(t)
	md := w.rolling()
	for _, set := range w.sets() {
		w.fill(&set)
	}
	w.reads = nil
	w.before = func() {
		if len(w.reads) != 3 {
			return // the last of the three reads lists the Machines
		}
		set := w.sets()[0]
		set.Spec.Replicas = ptr.To(int32(1))
		if err := w.Update(t.Context(), &set); err != nil {
			t.Error(err)
		}
	}
	_ = w.reconcileOnce(md) // an error due to the conflict
	if got := *w.sets()[0].Spec.Replicas; got != 1 {
		t.Errorf("the old set has %d replicas, want 1: it must not be scaled up again", got)
	}
}
