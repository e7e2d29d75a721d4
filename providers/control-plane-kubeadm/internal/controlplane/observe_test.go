package controlplane

import "testing"

// A control plane that is being deleted observes its workload cluster without setting conditions of Machines.
func TestObserve(t *testing.T) {
	b, f := three(t)
	b.s.observed, b.s.connection.Workload, b.API.Writes = nil, nil, nil
	if _, err := b.take(t.Context(), "observe"); err != nil || b.s.observed != nil {
		t.Errorf("without a connection: observed %+v, error %v", b.s.observed, err)
	}
	delete(f.PodObjects, "kube-scheduler-b")
	b.s.connection.Workload = f
	if _, err := b.take(t.Context(), "observe"); err != nil || b.s.observed == nil || len(b.s.observed.Nodes) != 3 {
		t.Errorf("observed %+v, error %v", b.s.observed, err)
	}
	if len(b.API.Writes) > 0 {
		t.Errorf("writes %q, want none", b.API.Writes)
	}
}
