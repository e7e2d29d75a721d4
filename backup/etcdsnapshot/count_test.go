package etcdsnapshot

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestCount: what was changed to another class, or deleted, does not count.
func TestCount(t *testing.T) {
	e := startEtcd(t, filepath.Join(t.TempDir(), "data"), "m1")
	for _, kv := range [][2]string{{"a/1", "x"}, {"a/2", "x"}, {"a/3", "x"}, {"a/2", "y"}, {"b/1", "x"}, {"a/4", ""}} {
		e.put(t, kv[0], []byte(kv[1]))
	}
	if _, err := e.Delete(t.Context(), "a/3"); err != nil {
		t.Fatal(err)
	}
	path, _ := e.snapshot(t)
	e.stop()
	got, err := Count(t.Context(), path, func(key string, value []byte) string {
		if !strings.HasPrefix(key, "a/") {
			return ""
		}
		return string(value)
	})
	testenv.Must(t, err)
	if diff := cmp.Diff(map[string]int{"x": 1, "y": 1}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
