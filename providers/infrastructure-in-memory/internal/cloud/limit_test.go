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

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

func filled(name string, bytes int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data: map[string]string{"x": strings.Repeat("x", bytes)}}
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
		_, err = store.Ensure(g, filled(fmt.Sprint("c", count), 1000))
	}
	if codeOf(err) != http.StatusInsufficientStorage || count < 30 || count > 50 {
		t.Fatalf("100 KiB are full after %d objects of 2 KiB: %v", count, err)
	}
	for reason, do := range map[string]func(*Group) error{
		"a new object": func(g *Group) error { _, err := store.Ensure(g, filled("another", 1)); return err },
		"a larger object": func(g *Group) error {
			return store.Modify(g, "default", "c0", func(c *corev1.ConfigMap) error { c.Data["x"] = strings.Repeat("x", 20000); return nil })
		},
	} {
		if err := do(g); codeOf(err) != http.StatusInsufficientStorage {
			t.Errorf("%s: %v", reason, err)
		}
		if err := do(start()); codeOf(err) != http.StatusInsufficientStorage {
			t.Errorf("%s, after a restart: %v", reason, err)
		}
	}
	if _, err := g.EnsureMachine(machines.Spec{Name: "m", UID: "m"}); err != nil {
		t.Errorf("a simulated machine in a full cluster: %v", err)
	}
	if err := store.Modify(g, "default", "c0", func(c *corev1.ConfigMap) error { c.Data["x"] = ""; return nil }); err != nil {
		t.Errorf("shrinking an object: %v", err)
	}
	if err := store.Remove[corev1.ConfigMap](g, "default", "c1"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Ensure(g, filled("another", 1000)); err != nil {
		t.Errorf("creating an object after a deletion: %v", err)
	}
}
