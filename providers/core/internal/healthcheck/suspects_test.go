package healthcheck

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestSuspectsAreQueriedOneAtATime(t *testing.T) {
	s := newSuspects()
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	begin := func(name string, want bool) func(bool) {
		t.Helper()
		done, allowed := s.begin(key(name))
		if allowed != want {
			t.Fatalf("cluster %s: allowed %t, want %t", name, allowed, want)
		}
		return done
	}
	a, b := begin("a", true), begin("b", true) // Nothing is known about them.
	a(false)
	b(false)
	a = begin("a", true)
	begin("b", false)
	begin("a", false)
	begin("c", true)(true)
	a(true)
	b = begin("b", true)
	begin("a", true)(true) // It has answered.
	b(true)
	begin("b", true)(true)
}
