package controlplane

import "testing"

// Without a Cluster there is nothing to reconcile: its event triggers the next reconcile.
func TestWaitsForTheCluster(t *testing.T) {
	b := newBench(t)
	if result, err := b.take(t.Context(), "cluster"); err != nil || result.Ends() {
		t.Errorf("with a Cluster it waits for %q, error %v", result.Waiting(), err)
	}
	b.Cluster = nil
	if result, err := b.take(t.Context(), "cluster"); err != nil || result.Waiting() != "the Cluster to own it" {
		t.Errorf("without a Cluster it waits for %q, error %v", result.Waiting(), err)
	}
}
