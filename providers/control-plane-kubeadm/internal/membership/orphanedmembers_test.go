package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestRemoveOrphanedMembers(t *testing.T) {
	cases := []struct {
		reason   string
		nodeless string
		arrange  func(*kcptest.Workload)
		want     []string
	}{
		{reason: "every member has a Machine"},
		{reason: "a member without a Machine and a Node", arrange: func(f *kcptest.Workload) { f.Members["x"] = false }, want: []string{"remove x"}},
		{
			reason: "a member with a Node", arrange: func(f *kcptest.Workload) {
				f.Members["x"], f.NodeObjects["x"] = true, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			},
		},
		{reason: "a member that may belong to a Machine without a Node", nodeless: "c", arrange: func(f *kcptest.Workload) { f.Members["x"] = true }},
		{
			reason:  "the others would have no quorum",
			arrange: func(f *kcptest.Workload) { f.Members["x"], f.Members["y"], f.Members["c"] = false, false, false },
		},
		{reason: "a member that has not started, and every Machine has one", arrange: func(f *kcptest.Workload) { f.Unstarted = 1 }, want: []string{"remove unstarted"}},
		{reason: "a member that has not started, and a Machine has none", arrange: func(f *kcptest.Workload) { f.Unstarted = 1; delete(f.Members, "c") }},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			if tc.arrange != nil {
				tc.arrange(f)
			}
			reload(t, b, f)
			for _, m := range b.Machines {
				if m.Name == tc.nodeless {
					m.Status.NodeRef = clusterv1.MachineNodeReference{}
				}
			}
			result, err := b.remover().RemoveOrphanedMembers(t.Context(), b.state())
			if err != nil || result.After() > 0 {
				t.Errorf("result %+v, error %v", result, err)
			}
			if diff := cmp.Diff(tc.want, f.Actions()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

// A Machine that the cache does not show yet may have a member.
func TestOrphanedMembersAreCheckedLive(t *testing.T) {
	b, f := three(t)
	f.Members["d"] = true
	reload(t, b, f)
	d := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", Labels: map[string]string{
		clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: "",
	}}}
	testenv.Must(t, b.API.Create(t.Context(), d))
	if _, err := b.remover().RemoveOrphanedMembers(t.Context(), b.state()); err != nil || len(f.Actions()) != 0 {
		t.Errorf("actions %q, error %v, want none", f.Actions(), err)
	}
}
