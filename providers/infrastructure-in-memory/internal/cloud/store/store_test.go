package store

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
)

// powered is a Power under which all machines have power.
type powered struct{}

func (powered) Dead(string) bool                           { return false }
func (powered) MarkUnreachable(*unstructured.Unstructured) {}

// open opens a store with namespace default, with a journal unless its path is empty.
func open(t *testing.T, journal string) *Store {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	s, err := Open(Options{
		Clock: clock, UIDs: rand.Reader, Names: mathrand.New(mathrand.NewPCG(1, 2)), Limit: DefaultLimit,
		Journal: journal, Owner: "uid", Power: powered{},
	})
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	return s
}

func ensure[T any, P Kind[T]](t *testing.T, s *Store, object P) {
	t.Helper()
	if _, err := Ensure(s, object); err != nil {
		t.Fatal(err)
	}
}

// filled returns a ConfigMap with this many bytes.
func filled(name string, bytes int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"x": strings.Repeat("x", bytes)},
	}
}

// count writes numbers into ConfigMap a, which it creates.
func count(t *testing.T, s *Store, writes int) {
	t.Helper()
	ensure(t, s, filled("a", 0))
	for i := range writes {
		number := func(c *corev1.ConfigMap) error {
			c.Data = map[string]string{"i": strings.Repeat("x", i%10+1)}
			return nil
		}
		if err := Modify(s, "default", "a", number); err != nil {
			t.Fatal(err)
		}
	}
}
