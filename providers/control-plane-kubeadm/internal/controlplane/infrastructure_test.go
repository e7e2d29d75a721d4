package controlplane

import (
	"testing"

	"k8s.io/utils/ptr"
)

func TestWaitsForTheInfrastructure(t *testing.T) {
	for ready, want := range map[bool]string{false: "the infrastructure of Cluster ns/c", true: ""} {
		b := newBench(t)
		b.Cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(ready)
		if result, err := b.take(t.Context(), "infrastructure"); err != nil || result.Waiting() != want {
			t.Errorf("ready %t: it waits for %q, want %q; error %v", ready, result.Waiting(), want, err)
		}
	}
}
