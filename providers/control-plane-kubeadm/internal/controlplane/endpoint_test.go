package controlplane

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestWaitsForTheEndpoint(t *testing.T) {
	for want, endpoint := range map[string]clusterv1.APIEndpoint{
		"": {Host: "h", Port: 6443},
		"the control plane endpoint of Cluster ns/c": {Host: "h"}, // without a port
	} {
		b := newBench(t)
		b.Cluster.Spec.ControlPlaneEndpoint = endpoint
		if result, err := b.take(t.Context(), "endpoint"); err != nil || result.Waiting() != want {
			t.Errorf("endpoint %s: it waits for %q, want %q; error %v", endpoint.String(), result.Waiting(), want, err)
		}
	}
}
