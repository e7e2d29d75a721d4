package cloud

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func filled(name string, bytes int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"x": strings.Repeat("x", bytes)}}
}

func codeOf(err error) int32 {
	if status, ok := err.(apierrors.APIStatus); ok { // It is returned without wrapping.
		return status.Status().Code
	}
	return 0
}

func TestGroupsAreLimited(t *testing.T) {
	directory := t.TempDir()
	start := func() *Group {
		g, err := New(Options{Limit: 100 << 10, Directory: directory}).EnsureGroup(types.NamespacedName{Namespace: "n", Name: "c"}, "uid")
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := start()
	count := 0
	var err error
	for ; err == nil && count < 1000; count++ {
		_, err = Ensure(g, filled(fmt.Sprint("c", count), 1000))
	}
	if codeOf(err) != http.StatusInsufficientStorage || count < 30 || count > 50 {
		t.Fatalf("100 KiB are full after %d objects of 2 KiB: %v", count, err)
	}
	for reason, do := range map[string]func(*Group) error{
		"a new object": func(g *Group) error { _, err := Ensure(g, filled("another", 1)); return err },
		"a larger object": func(g *Group) error {
			return Modify(g, "default", "c0", func(c *corev1.ConfigMap) error { c.Data["x"] = strings.Repeat("x", 20000); return nil })
		},
	} {
		if err := do(g); codeOf(err) != http.StatusInsufficientStorage {
			t.Errorf("%s: %v", reason, err)
		}
		if err := do(start()); codeOf(err) != http.StatusInsufficientStorage {
			t.Errorf("%s, after a restart: %v", reason, err)
		}
	}
	if _, err := g.EnsureMachine(MachineSpec{Name: "m", UID: "m"}); err != nil {
		t.Errorf("a simulated machine in a full cluster: %v", err)
	}
	if err := Modify(g, "default", "c0", func(c *corev1.ConfigMap) error { c.Data["x"] = ""; return nil }); err != nil {
		t.Errorf("shrinking an object: %v", err)
	}
	if err := Remove[corev1.ConfigMap](g, "default", "c1"); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(g, filled("another", 1000)); err != nil {
		t.Errorf("creating an object after a deletion: %v", err)
	}
}

func TestObjectsAreLimited(t *testing.T) {
	g, _ := newTestGroup(t)
	if _, err := Ensure(g, filled("large", maxObject)); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Error(err)
	}
}

// TestHistoryIsLimitedInBytes checks the size of the history for watches that fall behind.
func TestHistoryIsLimitedInBytes(t *testing.T) {
	g, _ := newTestGroup(t)
	for i := range 40 {
		if _, err := Ensure(g, filled(fmt.Sprint("c", i), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if g.history.bytes > historyMaxBytes || g.history.bytes != size(g.history.events) || len(g.history.events) == 0 {
		t.Errorf("the history has %d events with %d bytes, recorded size %d", len(g.history.events), size(g.history.events), g.history.bytes)
	}
}
