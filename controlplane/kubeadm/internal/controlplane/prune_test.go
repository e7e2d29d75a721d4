package controlplane

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/plan"
)

func TestPrune(t *testing.T) {
	cases := []struct {
		reason   string
		deleting []string
		nodeless string
		arrange  func(*fakeCluster)
		want     []string
		again    bool
	}{
		{reason: "all is as it should be"},
		{reason: "whoever deletes a Machine, its member leaves", deleting: []string{"b"}, want: []string{"remove b"}},
		{reason: "a leader hands over to the newest that stays", deleting: []string{"a"}, want: []string{"lead c", "remove a"}},
		{reason: "two at once leave one after another", deleting: []string{"a", "b"}, want: []string{"lead c", "remove a", "remove b"}},
		{reason: "nobody is left to hand over to", deleting: []string{"a", "b", "c"}, again: true},
		{
			reason: "the others would have no quorum", deleting: []string{"b"}, again: true,
			arrange: func(f *fakeCluster) { f.etcd["c"] = false },
		},
		{reason: "a member that nobody stands behind", arrange: func(f *fakeCluster) { f.etcd["x"] = false }, want: []string{"remove x"}},
		{
			reason: "a member whose Node is there", arrange: func(f *fakeCluster) {
				f.etcd["x"], f.nodes["x"] = true, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			},
		},
		{reason: "a member that may be that of a Machine without Node", nodeless: "c", arrange: func(f *fakeCluster) { f.etcd["x"] = true }},
		{
			reason:  "removing it would cost the quorum",
			arrange: func(f *fakeCluster) { f.etcd["x"], f.etcd["b"], f.etcd["c"] = false, false, false },
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
				if slices.Contains(tc.deleting, m.Name) {
					m.DeletionTimestamp = &metav1.Time{Time: now}
				}
				if m.Name == tc.nodeless {
					m.Status.NodeRef = nil
				}
			}
			result, err := b.prune(t.Context(), b.scope)
			if err != nil || (result.After() > 0) != tc.again {
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

// The deletion of a Machine is finished even if nobody wants it any more: its member has left.
func TestADepartedMachineGoesAlthoughItIsWantedAgain(t *testing.T) {
	b, f := three(t)
	if err := b.mark(t.Context(), b.named("b")); err != nil {
		t.Fatal(err)
	}
	three := int32(3)
	b.kcp.Spec.Replicas = &three
	if action := plan.Next(b.planned()); action.Kind != plan.Nothing {
		t.Errorf("before its member left, the plan is %+v", action)
	}
	delete(f.etcd, "b")
	reload(t, b, f)
	if action := plan.Next(b.planned()); action.Kind != plan.ScaleDown || action.Machine != "b" || len(action.Blocked) > 0 {
		t.Errorf("the plan is %+v", action)
	}
	b.named("b").Annotations[clusterv1.DeleteMachineAnnotation] = "true"
	if action := plan.Next(b.planned()); action.Kind != plan.Nothing {
		t.Errorf("what a person marked need not go, but the plan is %+v", action)
	}
}
