package membership

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// A machine may have joined etcd although its Machine has no Node yet.
func TestRemoveMemberOfAMachineWithoutNode(t *testing.T) {
	elsewhere := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "cloud://else"}}
	cases := []struct {
		reason   string
		nodeless []string // Machines that have no Node
		members  map[string]bool
		learning int
		nodes    map[string]*corev1.Node
		want     []string
		waits    bool
	}{
		{reason: "it has no member", nodeless: []string{"c"}, members: map[string]bool{"a": true, "b": true}},
		{reason: "it has one", nodeless: []string{"c"}, members: map[string]bool{"a": true, "b": true, "c": false}, want: []string{"remove c"}},
		{reason: "it has one that has not started", nodeless: []string{"c"}, members: map[string]bool{"a": true, "b": true}, learning: 1, want: []string{"remove unstarted"}},
		{reason: "the others would have no quorum", nodeless: []string{"c"}, members: map[string]bool{"a": true, "b": false, "c": false}, waits: true},
		{
			reason: "the member is on a Node of another machine", nodeless: []string{"c"},
			members: map[string]bool{"a": true, "b": true, "c": false}, nodes: map[string]*corev1.Node{"c": elsewhere},
		},
		{
			reason: "it may belong to two Machines, and the others have a quorum in either case", nodeless: []string{"c", "d"},
			members: map[string]bool{"a": true, "b": true, "c": false},
		},
		{
			reason: "it may belong to two Machines, and the others have no quorum", nodeless: []string{"b", "c"},
			members: map[string]bool{"a": true, "b": false}, waits: true,
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			f.Members, f.Unstarted = tc.members, tc.learning
			reload(t, b, f)
			if len(tc.nodeless) == 2 && tc.nodeless[1] == "d" {
				d := kcptest.Machine("d", "cp-uid")
				testenv.Must(t, b.API.Create(t.Context(), d))
				b.Machines = append(b.Machines, &snapshot.Machine{Machine: d})
			}
			for _, name := range tc.nodeless {
				b.Named(name).Status.NodeRef = clusterv1.MachineNodeReference{}
				b.Named(name).Spec.ProviderID = "cloud://" + name
				delete(b.observed.Nodes, name)
			}
			maps.Copy(b.observed.Nodes, tc.nodes)
			why, err := b.remover().remove(t.Context(), b.state(), b.Named(tc.nodeless[0]))
			if err != nil || (why != "") != tc.waits {
				t.Errorf("it waits for %q, error %v", why, err)
			}
			if diff := cmp.Diff(tc.want, f.Actions()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

// The member of a Machine without a Node is found by elimination. With a stale cache, that must not remove the member of a
// Machine that the cache does not show.
func TestMembersOfMachinesThatTheCacheLacks(t *testing.T) {
	cases := []struct {
		reason    string
		members   map[string]bool
		unstarted int
		want      []string // with a cache that is up to date
	}{
		{reason: "its Node is not registered yet", members: map[string]bool{"a": true, "b": true, "d": true}, want: []string{"remove d"}},
		{reason: "its member has not started", members: map[string]bool{"a": true, "b": true}, unstarted: 1, want: []string{"remove unstarted"}},
	}
	for _, tc := range cases {
		for _, stale := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stale %t", tc.reason, stale), func(t *testing.T) {
				b, f := three(t)
				b.Deleted(t, "c")
				b.Drained(t, "c")
				f.Members, f.Unstarted = maps.Clone(tc.members), tc.unstarted
				reload(t, b, f)
				b.Named("c").Status.NodeRef = clusterv1.MachineNodeReference{}
				delete(b.observed.Nodes, "c")
				if stale {
					if err := b.API.Create(t.Context(), kcptest.Machine("d", "cp-uid")); err != nil { // by another leader
						t.Fatal(err)
					}
				}
				_, err := b.remover().PreTerminate(t.Context(), b.state())
				want, held := tc.want, []string{"a", "b"}
				if stale {
					want, held = nil, []string{"a", "b", "c", "d"}
				}
				if step.IsStale(err) != stale || (err != nil) != stale {
					t.Errorf("error %v, want a stale one: %t", err, stale)
				}
				if diff := cmp.Diff(want, f.Actions()); diff != "" {
					t.Errorf("actions (-want +got):\n%s", diff)
				}
				if got := b.Held(t); !slices.Equal(held, got) {
					t.Errorf("held are %q, want %q", got, held)
				}
				if reported := condition.Get(b.Named("c"), controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition); reported.Message != "" {
					t.Errorf("a stale cache is reported: %q", reported.Message)
				}
			})
		}
	}
}
