package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

func TestPrune(t *testing.T) {
	cases := []struct {
		reason   string
		nodeless string
		arrange  func(*fakeCluster)
		want     []string
	}{
		{reason: "all is as it should be"},
		{reason: "a member that nobody stands behind", arrange: func(f *fakeCluster) { f.etcd["x"] = false }, want: []string{"remove x"}},
		{
			reason: "a member whose Node is there", arrange: func(f *fakeCluster) {
				f.etcd["x"], f.nodes["x"] = true, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			},
		},
		{reason: "a member that may be that of a Machine without Node", nodeless: "c", arrange: func(f *fakeCluster) { f.etcd["x"] = true }},
		{
			reason:  "removing it would cost the quorum",
			arrange: func(f *fakeCluster) { f.etcd["x"], f.etcd["y"], f.etcd["c"] = false, false, false },
		},
		{reason: "a member that never started and is nobody's", arrange: func(f *fakeCluster) { f.unstarted = 1 }, want: []string{"remove unstarted"}},
		{reason: "a member that starts", arrange: func(f *fakeCluster) { f.unstarted = 1; delete(f.etcd, "c") }},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			if tc.arrange != nil {
				tc.arrange(f)
			}
			reload(t, b, f)
			for _, m := range b.machines {
				if m.Name == tc.nodeless {
					m.Status.NodeRef = nil
				}
			}
			result, err := b.prune(t.Context(), b.scope)
			if err != nil || result.After() > 0 {
				t.Errorf("result %+v, error %v", result, err)
			}
			if diff := cmp.Diff(tc.want, f.actions()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

// The cache of another process may lag behind: a Machine that it does not show yet has a member.
func TestPruneBelievesTheLiveMachines(t *testing.T) {
	b, f := three(t)
	f.etcd["d"] = true
	reload(t, b, f)
	d := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", Labels: map[string]string{
		clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: "",
	}}}
	if err := b.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if _, err := b.prune(t.Context(), b.scope); err != nil || len(f.actions()) != 0 {
		t.Errorf("actions %q, error %v, want none", f.actions(), err)
	}
}
