package generate

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// TestVersionsInUse is about the completion of --kubernetes-version.
func TestVersionsInUse(t *testing.T) {
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for name, version := range map[string]string{"a": "v1.9.0", "b": "v1.31.2", "c": "v1.31.2", "d": "", "e": "broken"} {
		c := &clusterv1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		if version != "" {
			c.Spec.Topology = &clusterv1beta1.Topology{Version: version}
		}
		builder.WithObjects(c)
	}
	opts := &ClusterOptions{Connect: func(management.Kubeconfig) (*management.Cluster, error) {
		return &management.Cluster{Client: builder.Build()}, nil
	}}
	if got, err := versionsInUse(t.Context(), opts); err != nil || !slices.Equal(got, []string{"v1.31.2", "v1.9.0"}) {
		t.Errorf("got %q, %v", got, err)
	}
}
