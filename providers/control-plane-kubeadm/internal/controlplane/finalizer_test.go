package controlplane

import "testing"

// A control plane that is being deleted without our finalizer may be gone any moment: nothing is deleted for it then.
func TestStopsWithoutTheFinalizer(t *testing.T) {
	b := newBench(t)
	b.deleting()
	if result, err := b.take(t.Context(), "finalizer"); err != nil || result.Ends() {
		t.Errorf("with the finalizer it ends with %+v, error %v", result, err)
	}
	b.KCP.Finalizers = nil
	if result, err := b.take(t.Context(), "finalizer"); err != nil || !result.Ends() || result.Waiting() != "" {
		t.Errorf("without the finalizer: %+v, error %v, want it to stop", result, err)
	}
}
