package resourceset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPrune: bindings are deleted when their Cluster does not exist in the API server.
func TestPrune(t *testing.T) {
	w := newWorld(t, set(), configMap("m"), cluster("hidden"), bound("hidden", true, "s"), bound("gone", true, "s", "other"), bound("theirs", true, "other"))
	w.Cache.Hide(cluster("hidden"))
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, name := range []string{"hidden", "gone", "theirs"} {
		got[name] = w.entries(name) != nil
	}
	if diff := cmp.Diff(map[string]bool{"hidden": true, "gone": false, "theirs": true}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
