package journey

import (
	"path/filepath"
	"testing"
)

// TestReleaseMeetsContract checks the project's own release like that of any provider.
func TestReleaseMeetsContract(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	folders, err := filepath.Glob(filepath.Join(filepath.Dir(w.Tools.config), "*", "v2.0.0"))
	if err != nil || len(folders) < 6 {
		t.Fatalf("want the releases of at least 6 providers, got %v, %v", folders, err)
	}
	if r := w.Tools.Clusterctl(t.Context(), "", append([]string{"check", "provider"}, folders...)...); r.Failed {
		t.Error(r)
	}
}
