package cloud

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// open reopens the group, like a process that restarts after a kill.
func open(t *testing.T, directory string, uid types.UID) *Group {
	t.Helper()
	g, err := New(Options{Clock: clocktesting.NewFakeClock(start), Directory: directory}).EnsureGroup(testKey, uid)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func contents(g *Group) map[string]string {
	all := map[string]string{}
	for _, r := range []store.Resource{configMaps, store.Namespaces(), machines.Resource()} {
		list, _ := g.List(r, "", store.Selector{})
		for _, o := range list {
			all[o.Key.String()] = string(o.Raw())
		}
	}
	return all
}

func TestGroupSurvivesKill(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "journals")
	g := open(t, directory, "uid")
	put(t, g, object("a"), object("b", finalizer), object("c"), object("dependent", owned("a")))
	if err := store.Modify(g, "default", "a",
		func(c *corev1.ConfigMap) error { c.Data = map[string]string{"k": "v"}; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c"} {
		if _, _, err := g.Delete(key(name), store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.EnsureMachine(machines.Spec{Name: "m"}); err != nil {
		t.Fatal(err)
	}
	want, revision := contents(g), g.Revision()

	again := open(t, directory, "uid")
	if diff := cmp.Diff(want, contents(again)); diff != "" {
		t.Error(diff)
	}
	if again.Revision() < revision {
		t.Errorf("the revision decreased from %d to %d", revision, again.Revision())
	}
	if _, _, err := again.Delete(key("a"), store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := existing(again); got != "-b" {
		t.Errorf("dependents after a restart: %q", got)
	}
	if got := existing(open(t, directory, "another owner")); got != "" {
		t.Errorf("another owner must not get the data: %q", got)
	}
}

func TestIncompleteRecordIsDropped(t *testing.T) {
	for _, test := range []struct{ reason, end string }{
		{"an incomplete write", `{"type":"DELETED","resource":"configmaps","obj`},
		{"a write of zeros", "\x00\x00\x00\x00"},
		{"a record with zeros", "{\"type\":\"DELETED\",\x00\x00\x00\x00}\n"},
	} {
		directory := t.TempDir()
		g := open(t, directory, "uid")
		put(t, g, object("a"))
		file, err := os.OpenFile(store.JournalPath(directory, testKey), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(test.end); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		again := open(t, directory, "uid")
		put(t, again, object("b"))
		if got := existing(open(t, directory, "uid")); got != "a b" {
			t.Errorf("%s: objects that were written before and after: %q", test.reason, got)
		}
	}
}

func TestInvalidJournal(t *testing.T) {
	directory := t.TempDir()
	g := open(t, directory, "uid")
	put(t, g, object("a"), object("b"))
	path := store.JournalPath(directory, testKey)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := bytes.Replace(text, []byte(`"name":"a"`), []byte(`"name":a"`), 1)
	if err := os.WriteFile(path, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = New(Options{Directory: directory}).EnsureGroup(testKey, "uid")
	if err == nil || !strings.Contains(err.Error(), path+": remove the file to start with an empty cluster: line ") {
		t.Errorf("want an error with the file and the remedy: %v", err)
	}
}

func TestDeadMachinesRecoverAfterRestart(t *testing.T) {
	directory := t.TempDir()
	g := open(t, directory, "uid")
	for _, name := range []string{"m", "n"} {
		run(t, g, name)
		if _, err := store.Ensure(g, node(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.SetFaults(faults.Faults{DeadMachines: []string{"m", "n"}}); err != nil {
		t.Fatal(err)
	}
	g = open(t, directory, "uid")
	if err := g.SetFaults(faults.Faults{DeadMachines: []string{"n"}}); err != nil { // The annotation was changed meanwhile.
		t.Fatal(err)
	}
	for name, want := range map[string]corev1.ConditionStatus{"m": corev1.ConditionTrue, "n": corev1.ConditionUnknown} {
		n, err := store.Get[corev1.Node](g, "", name)
		if err != nil || conditionOf(n, corev1.NodeReady).Status != want {
			t.Errorf("%s: want %s, have %+v, %v", name, want, n, err)
		}
	}
}

func TestWritesFailWithTheirJournal(t *testing.T) {
	directory := t.TempDir()
	g := open(t, directory, "uid")
	if err := os.Remove(store.JournalPath(directory, testKey)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Ensure(g, object("a")); !apierrors.IsInternalError(err) || existing(g) != "" {
		t.Errorf("a write without its journal: %v, %q", err, existing(g))
	}
}

func TestDeletedGroupsLeaveNoFile(t *testing.T) {
	directory := t.TempDir()
	c := New(Options{Directory: directory})
	g, err := c.EnsureGroup(testKey, "uid")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Drop(g); err != nil {
		t.Fatal(err)
	}
	if err := c.Drop(g); err != nil {
		t.Errorf("dropping again: %v", err)
	}
	left, err := os.ReadDir(directory)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestOnlyOwnFilesAreRemoved matters because names come from annotations and labels, which users can write.
func TestOnlyOwnFilesAreRemoved(t *testing.T) {
	parent := t.TempDir()
	directory := filepath.Join(parent, "kept")
	open(t, directory, "theirs")
	outside := filepath.Join(parent, "x.journal")
	if err := os.WriteFile(outside, []byte(`{"version":1,"uid":"mine"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := New(Options{Directory: directory})
	for reason, key := range map[string]types.NamespacedName{
		"of another owner":      testKey,
		"outside the directory": {Namespace: "n", Name: "../../x"},
		"outside by namespace":  {Namespace: "../../kept/", Name: "x"},
		"no name":               {},
	} {
		if err := c.DiscardOf(key, "mine"); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if key == testKey {
			continue
		}
		if _, err := c.EnsureGroup(key, "mine"); err == nil {
			t.Errorf("%s: a file was created", reason)
		}
	}
	for _, path := range []string{outside, store.JournalPath(directory, testKey)} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if err := New(Options{Directory: directory}).DiscardOf(testKey, "theirs"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(store.JournalPath(directory, testKey)); !os.IsNotExist(err) {
		t.Errorf("removing it for its owner: %v", err)
	}
}
