package ownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestPausedByClusterName(t *testing.T) {
	var build object.Builder
	for _, tc := range []struct {
		reason  string
		cluster *clusterv1.Cluster
		want    bool
	}{
		{"the Cluster is paused", build.Cluster(object.Paused), true},
		{"the annotation of the Cluster pauses only the Cluster itself", build.Cluster(object.PausedByAnnotation[*clusterv1.Cluster]), false},
		{"the Cluster is not paused", build.Cluster(), false},
		{"the Cluster does not exist", nil, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var objects []client.Object
			if tc.cluster != nil {
				objects = append(objects, tc.cluster)
			}
			s := fakeapi.New(t, fakeapi.Options{Objects: objects})
			m := build.Machine("m", func(m *clusterv1.Machine) { m.Labels, m.OwnerReferences = nil, nil })
			paused, err := ownership.PausedByClusterName(s.Client, func(m *clusterv1.Machine) string { return m.Spec.ClusterName })(t.Context(), m)
			testenv.Must(t, err)
			if paused != tc.want {
				t.Errorf("paused = %t, want %t", paused, tc.want)
			}
		})
	}
}

func TestWaitForCluster(t *testing.T) {
	if got := ownership.WaitForCluster(nil, "c"); !got.Ends() || got.Waiting() != "Cluster c (spec.clusterName) to exist" {
		t.Errorf("result without Cluster: %+v", got)
	}
	if got := ownership.WaitForCluster(object.Builder{}.Cluster(), "c"); got.Ends() {
		t.Errorf("result with Cluster: %+v", got)
	}
}

func TestAddCluster(t *testing.T) {
	cluster := object.Builder{}.Cluster()
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "m", UID: "m"}
	got := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"own": ""}, OwnerReferences: []metav1.OwnerReference{other}}}
	ownership.AddCluster(got, cluster)
	ownership.AddCluster(got, cluster)
	want := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"own": "", clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{other, {
			APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: "c", UID: cluster.UID,
		}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
