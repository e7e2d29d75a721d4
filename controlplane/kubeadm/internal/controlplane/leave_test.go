package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// A machine can be a member of etcd before anyone has found its Node.
func TestAMachineWithoutNodeLeavesEtcd(t *testing.T) {
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
		{reason: "the others are too few without it", nodeless: []string{"c"}, members: map[string]bool{"a": true, "b": false, "c": false}, waits: true},
		{
			reason: "the member is on a Node of another machine", nodeless: []string{"c"},
			members: map[string]bool{"a": true, "b": true, "c": false}, nodes: map[string]*corev1.Node{"c": elsewhere},
		},
		{
			reason: "two could have it, and the others are enough whatever happens", nodeless: []string{"c", "d"},
			members: map[string]bool{"a": true, "b": true, "c": false},
		},
		{
			reason: "two could have it, and the others are too few", nodeless: []string{"b", "c"},
			members: map[string]bool{"a": true, "b": false}, waits: true,
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			f.etcd, f.unstarted = tc.members, tc.learning
			reload(t, b, f)
			if len(tc.nodeless) == 2 && tc.nodeless[1] == "d" {
				d := b.machines[2].DeepCopy()
				d.Name = "d"
				b.machines = append(b.machines, &machine{Machine: d})
			}
			for _, name := range tc.nodeless {
				b.named(name).Status.NodeRef = nil
				b.named(name).Spec.ProviderID = ptr.To("cloud://" + name)
				delete(b.observed.Nodes, name)
			}
			for name, node := range tc.nodes {
				b.observed.Nodes[name] = node
			}
			why, err := b.leaveEtcd(t.Context(), b.scope, b.named(tc.nodeless[0]))
			if err != nil || (why != "") != tc.waits {
				t.Errorf("it waits for %q, error %v", why, err)
			}
			if diff := cmp.Diff(tc.want, f.actions()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}
