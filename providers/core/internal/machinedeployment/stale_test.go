package machinedeployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// stale is a world whose controller runs only on request and reads from a cache that may be stale. There is no MachineSet
// controller: tests create the Machines.
type stale struct {
	*world
	api *fakeapi.Server
	// recent records the writes of the manager.
	recent *step.Recent
}

func newStale(t *testing.T) *stale {
	t.Helper()
	w := &stale{world: newWorld(t, false)}
	w.over(w.Client.(client.WithWatch))
	return w
}

// over makes a client of the API server that of the controller.
func (w *stale) over(direct client.WithWatch) {
	w.Helper()
	w.api = fakeapi.Over(w.T, direct, w.namespace)
	w.recent = step.NewRecent(5*time.Second, w.api.Clock)
}

// reads returns the reads of objects past the cache.
func (w *stale) reads() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(w.api.LiveReads), func(r string) bool { return strings.Contains(r, "CustomResourceDefinition") }), ", ")
}

// reconcile runs new controllers, which share only recent, often enough to make all writes.
func (w *stale) reconcile(md *clusterv1.MachineDeployment) {
	w.Helper()
	for range 4 {
		testenv.Must(w, w.reconcileOnce(md))
	}
}

func (w *stale) reconcileOnce(md *clusterv1.MachineDeployment) error {
	clients := w.api.ForController()
	clients.Recent = w.recent
	c := newController(clients)
	_, err := c.declared().Runner(c.Clients).Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(md)})
	return err
}

// fill creates and deletes Machines of a MachineSet until there are spec.replicas of them; new ones are available.
func (w *stale) fill(set *clusterv1.MachineSet) {
	w.Helper()
	testenv.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(set), set))
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
	m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name}
	state := condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition)
	if !healthy {
		state = condition.False(clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.NodeConditionsFailedV1Beta1Reason, "")
	}
	condition.Set(m, state)
	condition.Stamp(m, nil, time.Now())
	testenv.Must(w, w.Status().Patch(w.Context(), m, client.MergeFrom(before)))
}

// remove deletes a Machine and its finalizers.
func (w *stale) remove(m *clusterv1.Machine) {
	w.Helper()
	before := m.DeepCopy()
	m.Finalizers = nil
	testenv.Must(w, w.Delete(w.Context(), m.DeepCopy()), w.Patch(w.Context(), m, client.MergeFrom(before)))
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

// unowned returns a MachineSet with the template of a deployment, and without owner.
func (w *stale) unowned(name string, md *clusterv1.MachineDeployment, replicas int32) *clusterv1.MachineSet {
	return w.build.MachineSet(name, func(set *clusterv1.MachineSet) {
		set.Labels = md.Spec.Selector.MatchLabels
		set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = &replicas, md.Spec.Selector, md.Spec.Template
	})
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

// TestStaleRollout has one leader continue a rollout, and then another leader reconcile with a stale cache.
func TestStaleRollout(t *testing.T) {
	w := newStale(t)
	md := w.rolling()
	for _, set := range w.sets() {
		w.fill(&set)
	}
	old := w.api.NewCache() // three old Machines and a new one, all available: an old one can be deleted
	old.Freeze(&clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{})
	for range 4 {
		w.advance(md)
	}
	w.want("1 3", "the rollout continued")
	w.api.Cache = old
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
	w.api.Cache.Freeze(&clusterv1.MachineList{})
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
		set.Status.Replicas, set.Status.AvailableReplicas, set.Status.ReadyReplicas = ptr.To[int32](0), ptr.To[int32](3), ptr.To[int32](3)
		set.Status.ObservedGeneration = set.Generation
		testenv.Must(t, w.Client.Status().Patch(t.Context(), &set, client.MergeFrom(before)))
	}
	w.reconcile(md)
	w.want("3 1", "the new set has no Machine yet, despite its status")
}

// TestStaleMachineSets finds the set of the template although it is not in the cache.
func TestStaleMachineSets(t *testing.T) {
	w := newStale(t)
	w.api.Cache.Freeze(&clusterv1.MachineSetList{})
	md := w.deployment(2)
	w.create(object.ControlledBy(w.unowned("restored", md, 2), md))
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
		"ClusterPaused": {"the Cluster was paused, and may be moved away", func(w *stale, _ *clusterv1.MachineDeployment) {
			cluster := w.build.Cluster()
			testenv.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(cluster), cluster))
			cluster.Spec.Paused = ptr.To(true)
			testenv.Must(w, w.Update(w.Context(), cluster))
		}},
		"Deleted": {"the deployment was deleted", func(w *stale, md *clusterv1.MachineDeployment) {
			testenv.Must(w, w.Delete(w.Context(), md))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStale(t)
			md := w.deployment(3)
			w.reconcile(md)
			w.fill(&w.sets()[0])
			w.change(md, func() {
				md.Spec.Replicas = ptr.To(int32(5))
				md.Spec.Template.Spec.Version = "v1.30.1"
			})
			if name == "Size" {
				w.change(md, version(md, "v1.30.0"))
			}
			if name == "Template" {
				w.change(md, func() { md.Spec.Replicas = ptr.To(int32(3)) })
			}
			w.api.Cache.Freeze(&clusterv1.MachineDeploymentList{}, &clusterv1.ClusterList{})
			c.change(w, md)
			for range 3 {
				_ = w.reconcileOnce(md) // updating the status of a deleted object fails
			}
			for _, set := range w.sets() {
				if *set.Spec.Replicas != 3 || set.Spec.Template.Spec.Version != "v1.30.0" {
					t.Errorf("%s: a MachineSet has %d replicas of %s", c.reason, *set.Spec.Replicas, set.Spec.Template.Spec.Version)
				}
			}
		})
	}
}

// TestStaleMachinesOnDelete does not remove the replicas of Machines that are not in the cache.
func TestStaleMachinesOnDelete(t *testing.T) {
	w := newStale(t)
	md := w.deployment(3, func(md *clusterv1.MachineDeployment) {
		md.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	})
	w.reconcile(md)
	w.api.Cache.Freeze(&clusterv1.MachineList{})
	w.fill(&w.sets()[0])
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.want("3 0", "no old Machine was deleted")
}

// historyLimit sets revisionHistoryLimit, like a client of v1beta1.
func historyLimit(t *testing.T, limit int32) func(*clusterv1.MachineDeployment) {
	t.Helper()
	return func(md *clusterv1.MachineDeployment) {
		older := &clusterv1beta1.MachineDeployment{}
		testenv.Must(t, conversion.Shared().Convert(t.Context(), md, older))
		older.Spec.RevisionHistoryLimit = &limit
		testenv.Must(t, conversion.Shared().Convert(t.Context(), older, md))
	}
}

// TestHistoryLimit keeps an old MachineSet while it has a Machine in the API server.
func TestHistoryLimit(t *testing.T) {
	w := newStale(t)
	md := w.deployment(1, historyLimit(t, 0))
	w.reconcile(md)
	first := w.sets()[0]
	w.fill(&first)
	lingering := w.machinesOf(&first)[0]
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.fill(&w.sets()[1])
	w.reconcile(md)
	w.want("0 1", "the rollout is complete")
	w.api.Cache.Freeze(&clusterv1.MachineList{})
	w.api.Cache.Hide(&lingering)
	w.reconcile(md)
	w.want("0 1", "a Machine that is not in the cache keeps its set")
	w.api.Cache.Thaw()
	testenv.Must(t, w.Delete(t.Context(), lingering.DeepCopy()))
	w.reconcile(md)
	w.want("0 1", "a Machine that is being deleted keeps its set")
	before := lingering.DeepCopy()
	lingering.Finalizers = nil
	testenv.Must(t, w.Patch(t.Context(), &lingering, client.MergeFrom(before)))
	w.reconcile(md)
	w.want("1", "the set is deleted after its last Machine")
}

// TestNegativeHistoryLimit reconciles an object that was stored before negative numbers were rejected.
func TestNegativeHistoryLimit(t *testing.T) {
	w := newStale(t)
	md := w.deployment(1, historyLimit(t, -1))
	w.reconcile(md)
	first := w.sets()[0]
	w.fill(&first)
	w.want("1", "no set is deleted before the first rollout")
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.fill(&w.sets()[1])
	w.reconcile(md)
	old := w.machinesOf(&first)[0]
	before := old.DeepCopy()
	old.Finalizers = nil
	testenv.Must(t, w.Patch(t.Context(), &old, client.MergeFrom(before)))
	testenv.Must(t, w.Delete(t.Context(), &old))
	w.reconcile(md)
	w.want("1", "the limit counts as zero: only the current set is left")
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
		{"the first set is created", func() {}, "list MachineSet, get MachineDeployment md, get Cluster c"},
		{"its Machine becomes available", func() { w.fill(&w.sets()[0]) }, ""},
		{"the deployment is scaled up", func() {
			w.change(md, func() { md.Spec.Replicas = ptr.To(int32(2)) })
			w.recent.Wrote(md, w.api.Clock.Now())
		}, "list MachineSet, list Machine, get MachineDeployment md, get Cluster c"},
	} {
		w.api.LiveReads = nil
		c.change()
		w.reconcile(md)
		if got := w.reads(); got != c.want {
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
		{"written a moment ago, so the cached copy is not older", func(*stale, *clusterv1.MachineDeployment) {}, "list MachineSet", "3"},
		{"written too long ago", func(w *stale, _ *clusterv1.MachineDeployment) {
			w.api.Clock.SetTime(w.api.Clock.Now().Add(5 * time.Second))
		},
			"list MachineSet, get MachineDeployment md, get Cluster c", "3"},
		{"deleted since, together with its MachineSets, which is not in the cache", func(w *stale, md *clusterv1.MachineDeployment) {
			w.reconcile(md)
			w.api.Cache.Freeze(&clusterv1.MachineDeploymentList{})
			for _, set := range w.sets() {
				testenv.Must(w, w.Delete(w.Context(), &set))
			}
			testenv.Must(w, w.Delete(w.Context(), md))
		}, "list MachineSet, get MachineDeployment md", ""},
		{"updated since, which is not in the cache", func(w *stale, md *clusterv1.MachineDeployment) {
			w.api.Cache.Freeze(&clusterv1.MachineDeploymentList{})
			w.change(md, func() { md.Spec.Replicas = ptr.To(int32(1)) })
			w.recent.Wrote(md, w.api.Clock.Now())
		}, "list MachineSet, get MachineDeployment md", ""},
		{"created for existing MachineSets, which are not in the cache", func(w *stale, md *clusterv1.MachineDeployment) {
			w.api.Cache.Freeze(&clusterv1.MachineSetList{})
			w.create(w.unowned("orphan", md, 2))
		}, "list MachineSet, list Machine, get MachineDeployment md, get Cluster c", "3"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newStale(t)
			md, cluster := w.deployment(3), w.build.Cluster()
			testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
			w.recent.Wrote(md, w.api.Clock.Now())
			w.recent.Wrote(cluster, w.api.Clock.Now())
			c.before(w, md)
			w.api.LiveReads = nil
			if err := w.reconcileOnce(md); err != nil && !step.IsStale(err) {
				t.Fatal(err)
			}
			if got := w.reads(); got != c.want {
				t.Errorf("read %s, want %s", got, c.want)
			}
			w.want(c.sets, c.reason)
		})
	}
}

// TestFailedAdoption reports a MachineSet that cannot be adopted.
func TestFailedAdoption(t *testing.T) {
	w := newStale(t)
	md := w.deployment(1)
	w.create(w.unowned("orphan", md, 1))
	w.api.Before = func(r fakeapi.Request) error {
		if r.Verb == "apply" {
			return apierrors.NewForbidden(clusterv1.Resource("machinesets"), r.Name, errors.New("a policy forbids it"))
		}
		return nil
	}
	if err := w.reconcileOnce(md); err == nil {
		t.Error("want an error")
	}
	if events := w.api.Events(); len(events) == 0 || !strings.HasPrefix(events[0], `Warning FailedAdopt Failed to update MachineSet "orphan"`) {
		t.Errorf("events = %q", events)
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
	if len(sets) != 1 || sets[0].Spec.Template.Spec.FailureDomain != "normalized" {
		t.Fatalf("there are %d MachineSets, want one, as changed by the webhook", len(sets))
	}
	w.change(md, version(md, "v1.30.1"))
	w.reconcile(md)
	w.want("1 1", "another template leads to another set")

	sets = w.sets()
	sets[1].Spec.Template.Spec.FailureDomain = "elsewhere"
	testenv.Must(t, w.Update(t.Context(), &sets[1]))
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
	w.over(interceptor.NewClient(direct, interceptor.Funcs{
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
	}))
}

// TestRewrittenSetsAreReadOnce has a webhook that changes MachineSets. They always differ from the desired state, but must not be
// read from the API server in every reconcile.
func TestRewrittenSetsAreReadOnce(t *testing.T) {
	w := newStale(t)
	w.rewriteApplied()
	md := w.deployment(1)
	c := newController(w.api.ForController())
	runner := c.declared().Runner(c.Clients)
	reconcile := func() {
		t.Helper()
		if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(md)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		reconcile()
	}
	w.api.LiveReads = nil
	for range 4 {
		reconcile()
	}
	if got := w.reads(); got != "" {
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
	w.api.LiveReads = nil
	w.api.Before = func(r fakeapi.Request) error {
		if r.Cached || r.IsWrite() || w.reads() != "list MachineSet, list Machine" {
			return nil
		}
		set := w.sets()[0]
		set.Spec.Replicas = ptr.To(int32(1))
		return w.Update(t.Context(), &set)
	}
	_ = w.reconcileOnce(md) // an error due to the conflict
	if got := *w.sets()[0].Spec.Replicas; got != 1 {
		t.Errorf("the old set has %d replicas, want 1: it must not be scaled up again", got)
	}
}

// early is a reader that listed MachineSets before another leader created some; it gets them.
type early struct {
	client.Client
	api client.Reader
}

func (e early) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if _, ok := into.(*clusterv1.MachineSetList); ok {
		return nil
	}
	return e.Client.List(ctx, into, opts...)
}

func (e early) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, ok := into.(*clusterv1.MachineSet); ok {
		return e.api.Get(ctx, key, into, opts...)
	}
	return e.Client.Get(ctx, key, into, opts...)
}

func TestMachineSetOfAnotherLeader(t *testing.T) {
	w := newStale(t)
	md := w.deployment(2)
	w.reconcile(md)
	before := w.sets()
	clients := w.api.ForController()
	other := early{Client: clients.Client, api: w.Client}
	clients.Client, clients.Live = other, early{Client: other, api: w.Client}
	c := newController(clients)
	_, err := c.declared().Runner(c.Clients).Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(md)})
	testenv.Must(t, err)
	if after := w.sets(); len(before) != 1 || len(after) != 1 {
		t.Errorf("there are %d MachineSets, then %d: no other one may be created for the template", len(before), len(after))
	}
}
