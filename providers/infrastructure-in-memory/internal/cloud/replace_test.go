package cloud

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// saved returns the objects of a group as the content of a database at a later revision.
func saved(t *testing.T, g *Group) *Content {
	t.Helper()
	c := &Content{Revision: g.Revision() + 1000}
	for _, v := range g.Versions().All {
		if current, err := g.Get(v.Object.Key); err == nil && current == v.Object && v.Object.Key.Resource.Group != store.Simulation {
			c.Objects = append(c.Objects, store.Imported{Key: v.Object.Key, Revision: v.Object.Revision, JSON: v.Object.Raw()})
		}
	}
	return c
}

func TestReplaceIsDurable(t *testing.T) {
	directory := t.TempDir()
	g := open(t, directory, "uid")
	put(t, g, object("a"), object("b"))
	run(t, g, "m")
	backup := saved(t, g)
	want := contents(g)
	put(t, g, object("later"))
	if _, _, err := g.Delete(key("a"), store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := g.Replace(backup, "seed"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, contents(g)); diff != "" {
		t.Errorf("the objects of the backup and the machines: -want +got:\n%s", diff)
	}
	if g.Revision() != backup.Revision {
		t.Errorf("revision %d, want %d", g.Revision(), backup.Revision)
	}
	put(t, g, object("new"))
	want, revision := contents(g), g.Revision()
	again := open(t, directory, "uid")
	if diff := cmp.Diff(want, contents(again)); diff != "" || again.Revision() < revision {
		t.Errorf("after a restart at revision %d, before %d: -want +got:\n%s", again.Revision(), revision, diff)
	}
}

func TestWatchesEndWithReplace(t *testing.T) {
	for _, test := range []struct {
		reason string
		bump   int
	}{{"the revision is higher", 1000}, {"the revision is lower", -1}} {
		t.Run(test.reason, func(t *testing.T) {
			g, _ := newTestGroup(t)
			put(t, g, object("a"), object("b"))
			backup := saved(t, g)
			before := g.Revision()
			backup.Revision = uint64(int(before) + test.bump)
			watcher, err := g.Watch(configMaps, "", before, store.Selector{})
			if err != nil {
				t.Fatal(err)
			}
			_, changed, err := watcher.Poll()
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Replace(backup, "seed"); err != nil {
				t.Fatal(err)
			}
			select {
			case <-changed:
			default:
				t.Error("the watcher must wake up")
			}
			if _, _, err := watcher.Poll(); !apierrors.IsResourceExpired(err) {
				t.Errorf("a watch from before: %v", err)
			}
		})
	}
	g, _ := newTestGroup(t)
	before := g.Revision()
	if err := g.Replace(saved(t, g), "seed"); err != nil {
		t.Fatal(err)
	}
	watcher, err := g.Watch(configMaps, "", before, store.Selector{})
	if err == nil {
		_, _, err = watcher.Poll()
	}
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch at a revision from before: %v", err)
	}
}

func TestReplaceWithInvalidObjects(t *testing.T) {
	for _, test := range []struct {
		reason string
		one    store.Imported
		full   bool
	}{
		{"no JSON", store.Imported{Key: key("x"), JSON: []byte("k8s")}, false},
		{"another name than its key", store.Imported{Key: key("x"), JSON: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"y"}}`)}, false},
		{"no kind", store.Imported{Key: key("x"), JSON: []byte(`{"apiVersion":"v1","metadata":{"namespace":"default","name":"x"}}`)}, false},
		{"more than fits", store.Imported{Key: key("x"), JSON: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","data":{"x":%q},"metadata":{"namespace":"default","name":"x"}}`, strings.Repeat("x", 65<<20))}, true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			directory := t.TempDir()
			g := open(t, directory, "uid")
			put(t, g, object("a"))
			want, revision := contents(g), g.Revision()
			backup := saved(t, g)
			backup.Objects = append(backup.Objects, test.one)
			err := g.Replace(backup, "seed")
			var status apierrors.APIStatus
			if err == nil || errors.As(err, &status) != test.full {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(want, contents(g)); diff != "" || g.Revision() != revision {
				t.Errorf("something has changed: %s", diff)
			}
			if diff := cmp.Diff(want, contents(open(t, directory, "uid"))); diff != "" {
				t.Errorf("something has changed on disk: %s", diff)
			}
		})
	}
}

// TestEmptyReplace founds an empty cluster: only namespaces and machines exist, and revisions never go backwards.
func TestEmptyReplace(t *testing.T) {
	g, _ := newTestGroup(t)
	put(t, g, object("a"))
	run(t, g, "m")
	before := g.Revision()
	old, err := store.Get[corev1.Namespace](g, "", "kube-system")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Replace(nil, "seed"); err != nil {
		t.Fatal(err)
	}
	if list, revision := g.List(configMaps, "", store.Selector{}); len(list) != 0 || revision <= before {
		t.Errorf("%d objects are left at revision %d, before %d", len(list), revision, before)
	}
	if list, _ := g.List(store.Namespaces(), "", store.Selector{}); len(list) != 4 {
		t.Errorf("%d namespaces", len(list))
	}
	if next, err := store.Get[corev1.Namespace](g, "", "kube-system"); err != nil || next.UID == old.UID {
		t.Errorf("another cluster has another kube-system: %v", err)
	}
	if list, _ := g.List(machines.Resource(), "", store.Selector{}); len(list) != 1 {
		t.Error("machines must remain")
	}
}

// TestNodesAfterReplace checks which Nodes are ready after a restore, and when.
func TestNodesAfterReplace(t *testing.T) {
	directory := t.TempDir()
	g := open(t, directory, "uid")
	for _, name := range []string{"alive", "dead", "gone"} {
		run(t, g, name)
		if _, err := store.Ensure(g, node(name)); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Ensure(g, pod("on-"+name, name)); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(g.SetFaults(faults.Faults{}))
	backup := saved(t, g)
	ready := func() map[string]string {
		all := podsReady(t, g)
		for _, name := range []string{"alive", "dead", "gone"} {
			n, err := store.Get[corev1.Node](g, "", name)
			must(err)
			all[name] = string(conditionOf(n, corev1.NodeReady).Status)
		}
		return all
	}
	none := map[string]string{"alive": "Unknown", "dead": "Unknown", "gone": "Unknown", "on-alive": "False", "on-dead": "False", "on-gone": "False"}
	living := map[string]string{"alive": "True", "dead": "Unknown", "gone": "Unknown", "on-alive": "True", "on-dead": "False", "on-gone": "False"}
	powered := map[string]string{"alive": "True", "dead": "True", "gone": "Unknown", "on-alive": "True", "on-dead": "True", "on-gone": "False"}
	for _, step := range []struct {
		reason string
		do     func()
		want   map[string]string
	}{
		{"no kubelet reports", func() {
			must(g.DeleteMachine("gone"))
			must(g.SetFaults(faults.Faults{DeadMachines: []string{"dead", "gone"}}))
			must(g.Replace(backup, "seed"))
		}, none},
		{"kubelets of running machines report", func() { must(g.ConnectKubelets()) }, living},
		{"machines that do not exist do not return with power", func() { must(g.SetFaults(faults.Faults{})) }, powered},
		{"nothing changes with a restart", func() { g = open(t, directory, "uid"); must(g.SetFaults(faults.Faults{})) }, powered},
		{"kubelets wait until it is known which machines have power", func() {
			must(g.Replace(backup, "seed"))
			g = open(t, directory, "uid")
			must(g.ConnectKubelets())
		}, none},
		{"then they report", func() { must(g.SetFaults(faults.Faults{DeadMachines: []string{"dead"}})) }, living},
	} {
		step.do()
		if diff := cmp.Diff(step.want, ready()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", step.reason, diff)
		}
	}
}
