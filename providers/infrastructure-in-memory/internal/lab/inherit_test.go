package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
)

func TestInherit(t *testing.T) {
	own := inmemoryv1.APIEndpoint{Host: "127.0.0.1", Port: 20001}
	for _, test := range []struct {
		reason string
		have   inmemoryv1.APIEndpoint
		at     clusterv1.APIEndpoint
		want   inmemoryv1.APIEndpoint
	}{
		{"the Cluster has an endpoint, the object has none", inmemoryv1.APIEndpoint{}, clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 20002}, inmemoryv1.APIEndpoint{Host: "127.0.0.1", Port: 20002}},
		{"an endpoint of the object is kept", own, clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 20002}, own},
		{"a Cluster without endpoint gets it from the object", inmemoryv1.APIEndpoint{}, clusterv1.APIEndpoint{}, inmemoryv1.APIEndpoint{}},
		{"API servers do not listen on other hosts", inmemoryv1.APIEndpoint{}, clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}, inmemoryv1.APIEndpoint{}},
	} {
		c := newCluster("uid")
		c.Spec.ControlPlaneEndpoint = test.have
		newLab(t).Inherit(kinds.OfInMemoryCluster(c), &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: test.at}})
		if diff := cmp.Diff(test.want, c.Spec.ControlPlaneEndpoint); diff != "" {
			t.Errorf("%s, -want +got:\n%s", test.reason, diff)
		}
	}
}
