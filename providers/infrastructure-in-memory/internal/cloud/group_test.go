package cloud

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

var (
	start      = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	configMaps = store.Resource{Resource: "configmaps"}
	testKey    = types.NamespacedName{Namespace: "ns", Name: "c"}
)

func newTestGroup(t *testing.T) (*Group, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(start)
	g, err := New(Options{Clock: clock}).EnsureGroup(testKey, "uid")
	if err != nil {
		t.Fatal(err)
	}
	return g, clock
}

// object returns a ConfigMap with options.
func object(name string, options ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)}}
	for _, o := range options {
		o(c)
	}
	return c
}

func finalizer(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/wait"} }

// owned adds owner references that block owner deletion.
func owned(owners ...string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) {
		yes := true
		for _, owner := range owners {
			c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{
				APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID("uid-" + owner), BlockOwnerDeletion: &yes,
			})
		}
	}
}

func put(t *testing.T, g *Group, objects ...*corev1.ConfigMap) {
	t.Helper()
	for _, o := range objects {
		if created, err := store.Ensure(g, o); err != nil || !created {
			t.Fatalf("create %s: %v, %v", o.Name, created, err)
		}
	}
}

func key(name string) store.Key {
	return store.Key{Resource: configMaps, Namespace: "default", Name: name}
}

// existing returns the names of the ConfigMaps in default, with the prefix - if they are terminating.
func existing(g *Group) string {
	list, _ := g.List(configMaps, "default", store.Selector{})
	var names []string
	for _, o := range list {
		name := o.Key.Name
		if o.Terminating() {
			name = "-" + name
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestCreateSetsIdentity(t *testing.T) {
	g, _ := newTestGroup(t)
	before := g.Revision()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "x-", "namespace": "default"},
		"spec": map[string]any{},
	}}
	o, err := g.Create(configMaps, u, store.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := o.Unstructured()
	if !strings.HasPrefix(got.GetName(), "x-") || len(got.GetName()) != 7 || got.GetUID() == "" || got.GetGeneration() != 1 ||
		!got.GetCreationTimestamp().Time.Equal(start) || o.Revision != before+1 || got.GetResourceVersion() != fmt.Sprint(before+1) {
		t.Errorf("a new object must have name, UID, generation, time and version: %v", got.Object)
	}
}

func TestRevisionsIncreaseAfterRestart(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	first, err := New(Options{Clock: clock}).EnsureGroup(testKey, "uid")
	if err != nil {
		t.Fatal(err)
	}
	put(t, first, object("a"))
	seen := first.Revision()
	clock.Step(time.Second)
	second, err := New(Options{Clock: clock}).EnsureGroup(testKey, "uid")
	if err != nil {
		t.Fatal(err)
	}
	w, err := second.Watch(configMaps, "", seen, store.Selector{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Poll(); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before the restart must list again: %v", err)
	}
}

func TestDeletion(t *testing.T) {
	for _, test := range []struct {
		reason  string
		objects []*corev1.ConfigMap
		options store.DeleteOptions
		after   string // deleting a
		release string // the object whose finalizers are then removed
		finally string
	}{
		{"an object without dependents is deleted immediately", []*corev1.ConfigMap{object("a"), object("b")}, store.DeleteOptions{}, "b",
			"", "b"},
		{"a finalizer blocks it", []*corev1.ConfigMap{object("a", finalizer)}, store.DeleteOptions{}, "-a", "a", ""},
		{"dependents are deleted", []*corev1.ConfigMap{object("a"), object("b", owned("a")), object("c", owned("b"))},
			store.DeleteOptions{}, "", "", ""},
		{"orphans remain", []*corev1.ConfigMap{object("a"), object("b", owned("a"))},
			store.DeleteOptions{Propagation: metav1.DeletePropagationOrphan}, "b", "", "b"},
		{"a dependent with another owner remains", []*corev1.ConfigMap{object("a"), object("z"), object("b", owned("a", "z"))},
			store.DeleteOptions{}, "b z", "", "b z"},
		{"foreground deletion waits for dependents", []*corev1.ConfigMap{object("a"), object("b", owned("a"), finalizer)},
			store.DeleteOptions{Propagation: metav1.DeletePropagationForeground}, "-a -b", "b", ""},
		{"background deletion does not", []*corev1.ConfigMap{object("a"), object("b", owned("a"), finalizer)},
			store.DeleteOptions{Propagation: metav1.DeletePropagationBackground}, "-b", "b", ""},
		{"foreground deletion includes dependents of dependents",
			[]*corev1.ConfigMap{object("a"), object("b", owned("a")), object("c", owned("b"), finalizer)},
			store.DeleteOptions{Propagation: metav1.DeletePropagationForeground}, "-a -b -c", "c", ""},
		{"a dry run deletes nothing", []*corev1.ConfigMap{object("a")}, store.DeleteOptions{DryRun: true}, "a", "", "a"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			g, _ := newTestGroup(t)
			put(t, g, test.objects...)
			if _, _, err := g.Delete(key("a"), test.options); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, existing(g)); diff != "" {
				t.Fatalf("after the deletion: %s", diff)
			}
			if test.release != "" {
				if err := store.Modify(g, "default", test.release, func(c *corev1.ConfigMap) error { c.Finalizers = nil; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.finally, existing(g)); diff != "" {
				t.Errorf("finally: %s", diff)
			}
		})
	}
}

func TestNamespaces(t *testing.T) {
	g, _ := newTestGroup(t)
	namespace := store.Key{Resource: store.Namespaces(), Name: "n"}
	in := func(name string, options ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
		o := object(name, options...)
		o.Namespace = "n"
		return o
	}
	if _, err := store.Ensure(g, in("early")); !apierrors.IsNotFound(err) {
		t.Errorf("creating an object without its namespace: %v", err)
	}
	if _, err := store.Ensure(g, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
		t.Fatal(err)
	}
	put(t, g, in("a"), in("held", finalizer))
	if _, gone, err := g.Delete(namespace, store.DeleteOptions{}); err != nil || gone {
		t.Fatalf("deleting a namespace with content: gone %v, %v", gone, err)
	}
	if _, err := g.Get(store.Key{Resource: configMaps, Namespace: "n", Name: "a"}); !apierrors.IsNotFound(err) {
		t.Errorf("the content must be deleted: %v", err)
	}
	if _, err := store.Ensure(g, in("late")); !apierrors.HasStatusCause(err, "NamespaceTerminating") {
		t.Errorf("creating an object in a terminating namespace: %v", err)
	}
	if err := store.Modify(g, "n", "held", func(c *corev1.ConfigMap) error { c.Finalizers = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Get(namespace); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace must be deleted after its content: %v", err)
	}
	if _, _, err := g.Delete(store.Key{Resource: store.Namespaces(), Name: "kube-system"},
		store.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a default namespace: %v", err)
	}
}

func TestUpdate(t *testing.T) {
	g, _ := newTestGroup(t)
	put(t, g, object("a"))
	first, err := g.Get(key("a"))
	if err != nil {
		t.Fatal(err)
	}
	raced := false
	updated, err := g.Update(key("a"), store.WriteOptions{}, func(current *store.Object) (*unstructured.Unstructured, error) {
		u := current.Unstructured()
		u.SetResourceVersion("")
		if !raced {
			raced = true
			if err := store.Modify(g, "default", "a",
				func(c *corev1.ConfigMap) error { c.Data = map[string]string{"other": "write"}; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		u.SetLabels(map[string]string{"x": "y"})
		u.SetUID("")
		u.SetCreationTimestamp(metav1.Time{})
		return u, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := updated.Unstructured()
	if data, _, _ := unstructured.NestedStringMap(got.Object, "data"); data["other"] != "write" || got.GetUID() != first.UID ||
		!got.GetCreationTimestamp().Time.Equal(start) {
		t.Errorf("a write was lost, or the identity changed: %v", got.Object)
	}
	for reason, change := range map[string]func(*unstructured.Unstructured){
		"an old version": func(u *unstructured.Unstructured) { u.SetResourceVersion(fmt.Sprint(first.Revision)) },
		"another UID":    func(u *unstructured.Unstructured) { u.SetUID("other") },
	} {
		_, err := g.Update(key("a"), store.WriteOptions{}, func(current *store.Object) (*unstructured.Unstructured, error) {
			u := current.Unstructured()
			change(u)
			return u, nil
		})
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: %v, want Conflict", reason, err)
		}
	}
	before := g.Revision()
	if err := store.Modify(g, "default", "a", func(*corev1.ConfigMap) error { return nil }); err != nil || g.Revision() != before {
		t.Errorf("an update without changes: revision %d, then %d, %v", before, g.Revision(), err)
	}
}

func TestSelectors(t *testing.T) {
	g, _ := newTestGroup(t)
	put(t, g, object("a", func(c *corev1.ConfigMap) { c.Labels = map[string]string{"x": "1"} }),
		object("b", func(c *corev1.ConfigMap) { c.Data = map[string]string{"k": "v"} }))
	for _, test := range []struct {
		reason   string
		selector store.Selector
		want     []string
	}{
		{"the zero value", store.Selector{}, []string{"a", "b"}},
		{"by label", store.Selector{Labels: labels.SelectorFromSet(labels.Set{"x": "1"})}, []string{"a"}},
		{"by name", store.Selector{Fields: fields.OneTermEqualSelector("metadata.name", "b")}, []string{"b"}},
		{"by value", store.Selector{Fields: fields.OneTermEqualSelector("data.k", "v")}, []string{"b"}},
		{"by absence", store.Selector{Fields: fields.OneTermEqualSelector("data.k", "")}, []string{"a"}},
	} {
		var names []string
		list, _ := g.List(configMaps, "", test.selector)
		for _, o := range list {
			names = append(names, o.Key.Name)
		}
		if diff := cmp.Diff(test.want, names); diff != "" {
			t.Errorf("%s: %s", test.reason, diff)
		}
	}
}

func TestWatchWithSelector(t *testing.T) {
	g, _ := newTestGroup(t)
	w, err := g.Watch(configMaps, "default", g.Revision(), store.Selector{Labels: labels.SelectorFromSet(labels.Set{"x": "1"})})
	if err != nil {
		t.Fatal(err)
	}
	_, changed, err := w.Poll()
	if err != nil {
		t.Fatal(err)
	}
	label := func(value string) {
		t.Helper()
		if err := store.Modify(g, "default", "a",
			func(c *corev1.ConfigMap) error { c.Labels = map[string]string{"x": value}; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	put(t, g, object("a"))
	<-changed
	label("1")
	put(t, g, object("unrelated"))
	label("2")
	label("1")
	if _, _, err := g.Delete(key("a"), store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	events, _, err := w.Poll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, string(e.Type)+" "+e.Object.Key.Name)
	}
	if diff := cmp.Diff([]string{"ADDED a", "DELETED a", "ADDED a", "DELETED a"}, got); diff != "" {
		t.Error(diff)
	}
	if w.Revision() != g.Revision() {
		t.Errorf("the watcher is at revision %d, want %d", w.Revision(), g.Revision())
	}
}

func TestDeletedGroups(t *testing.T) {
	c := New(Options{})
	g, err := c.EnsureGroup(testKey, "uid")
	if err != nil {
		t.Fatal(err)
	}
	if same, err := c.EnsureGroup(testKey, "uid"); err != nil || same != g {
		t.Errorf("ensuring again: %v", err)
	}
	w, err := g.Watch(configMaps, "", g.Revision(), store.Selector{})
	if err != nil {
		t.Fatal(err)
	}
	_, changed, err := w.Poll()
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.EnsureGroup(testKey, "another owner")
	if err != nil || other == g {
		t.Fatalf("another owner must get another group: %v", err)
	}
	<-changed
	<-g.Closed()
	if _, _, err := w.Poll(); err != store.ErrDeleted { //nolint:errorlint // It is returned without wrapping.
		t.Error(err)
	}
	if _, err := store.Ensure(g, object("a")); err != store.ErrDeleted { //nolint:errorlint // As above.
		t.Error(err)
	}
	if diff := cmp.Diff([]types.NamespacedName{testKey}, c.Groups()); diff != "" {
		t.Error(diff)
	}
	second, _ := c.Group(testKey)
	if err := c.Drop(second); err != nil {
		t.Fatal(err)
	}
	if _, found := c.Group(testKey); found {
		t.Error("a deleted group was found")
	}
}
