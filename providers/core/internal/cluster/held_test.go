package cluster

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

func TestDeletionWaitsForExtensions(t *testing.T) {
	allowed := func(c *clusterv1.Cluster) { c.Annotations = map[string]string{runtimev1.OkToDeleteAnnotation: ""} }
	tests := []struct {
		reason  string
		cluster *clusterv1.Cluster
		hooks   bool
		want    string
	}{
		{reason: "extensions have not allowed it yet", cluster: build.Cluster(withTopology), hooks: true, want: "runtime extensions to allow the deletion"},
		{reason: "they have", cluster: build.Cluster(withTopology, allowed), hooks: true},
		{reason: "extensions are not called without the feature gate", cluster: build.Cluster(withTopology)},
		{reason: "extensions are not called for Clusters without a class", cluster: build.Cluster(withPlane), hooks: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			w := newWorld(t)
			w.hooks = test.hooks
			result, err := w.step(t, "held", test.cluster)
			if err != nil || result.Waiting() != test.want {
				t.Errorf("waits for %q, want %q; err = %v", result.Waiting(), test.want, err)
			}
		})
	}
}
