package controlplane

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
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
				d := owned("d", "cp-uid")
				if err := b.Client.Create(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				b.machines = append(b.machines, &machine{Machine: d})
			}
			for _, name := range tc.nodeless {
				b.named(name).Status.NodeRef = nil
				b.named(name).Spec.ProviderID = ptr.To("cloud://" + name)
				delete(b.observed.Nodes, name)
			}
			maps.Copy(b.observed.Nodes, tc.nodes)
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

// The member of a Machine without Node is found by elimination. A cache that lacks a Machine must not make its member the
// one to remove.
func TestTheMemberOfAMachineThatTheCacheLacksStays(t *testing.T) {
	cases := []struct {
		reason    string
		members   map[string]bool
		unstarted int
		want      []string // with a cache that is right
	}{
		{reason: "its Node is not registered yet", members: map[string]bool{"a": true, "b": true, "d": true}, want: []string{"remove d"}},
		{reason: "its member has not started", members: map[string]bool{"a": true, "b": true}, unstarted: 1, want: []string{"remove unstarted"}},
	}
	for _, tc := range cases {
		for _, stale := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stale %t", tc.reason, stale), func(t *testing.T) {
				b, f := three(t)
				b.deleted(t, "c")
				b.drained(t, "c")
				f.etcd, f.unstarted = maps.Clone(tc.members), tc.unstarted
				reload(t, b, f)
				b.named("c").Status.NodeRef = nil
				delete(b.observed.Nodes, "c")
				if stale {
					if err := b.Client.Create(t.Context(), owned("d", "cp-uid")); err != nil { // by another leader
						t.Fatal(err)
					}
				}
				_, err := b.terminate(t.Context(), b.scope)
				want, held := tc.want, []string{"a", "b"}
				if stale {
					want, held = nil, []string{"a", "b", "c", "d"}
				}
				if step.IsStale(err) != stale || (err != nil) != stale {
					t.Errorf("error %v, want one of an old cache: %t", err, stale)
				}
				if diff := cmp.Diff(want, f.actions()); diff != "" {
					t.Errorf("actions (-want +got):\n%s", diff)
				}
				if got := b.held(t); !slices.Equal(held, got) {
					t.Errorf("held are %q, want %q", got, held)
				}
				if said := condition.Get(b.named("c"), controlplanev1.MachineEtcdMemberHealthyCondition); said.Message != "" {
					t.Errorf("a retry that takes a moment is announced: %q", said.Message)
				}
			})
		}
	}
}

// A member may be removed only if those that remain have a quorum of healthy ones, whatever the members that answer
// disagree about.
func TestWhoMayLeaveEtcd(t *testing.T) {
	// An answer is "a: a b c", a member and the members it knows; "a!" has an alarm, "a?" does not answer, "a*" leads,
	// and "-" is a member that has not started.
	parse := func(text string) EtcdMember {
		name, known, _ := strings.Cut(text, ":")
		m := EtcdMember{Node: strings.TrimRight(name, "!?*"), Members: strings.Fields(strings.ReplaceAll(known, "-", "unstarted"))}
		for i := range m.Members {
			m.Members[i] = strings.TrimPrefix(m.Members[i], "unstarted")
		}
		slices.Sort(m.Members)
		if strings.Contains(name, "!") {
			m.Alarms = []string{"NOSPACE"}
		}
		if strings.Contains(name, "?") {
			m.Err = errors.New("no answer")
		}
		m.Leader = strings.Contains(name, "*")
		return m
	}
	for _, tc := range []struct {
		reason  string
		answers []string
		leaves  string
		leader  string
		waits   string
	}{
		{reason: "all are well", answers: []string{"a*: a b c", "b: a b c", "c: a b c"}, leaves: "a", leader: "a"},
		{reason: "the unhealthy one goes", answers: []string{"a*: a b c", "b: a b c", "c?"}, leaves: "c", leader: "a"},
		{reason: "a healthy one stays while another is not", answers: []string{"a*: a b c", "b: a b c", "c?"}, leaves: "b", leader: "a", waits: "2 healthy etcd members besides b, there are 1"},
		{reason: "two of three are unhealthy", answers: []string{"a: a b c", "b?", "c?"}, leaves: "b", waits: "2 healthy etcd members besides b, there are 1"},
		{reason: "two of five are, and one of them goes", answers: []string{"a*: a b c d e", "b: a b c d e", "c: a b c d e", "d?", "e?"}, leaves: "e", leader: "a"},
		{
			reason: "two of five are, and another one stays", answers: []string{"a*: a b c d e", "b: a b c d e", "c: a b c d e", "d?", "e?"}, leaves: "a", leader: "a",
			waits: "3 healthy etcd members besides a, there are 2",
		},
		{reason: "an alarm is no health", answers: []string{"a*: a b c", "b!: a b c", "c: a b c"}, leaves: "c", leader: "a", waits: "besides c, there are 1"},
		{reason: "one that lags behind does not know the third", answers: []string{"a: a b", "b*: a b c", "c: a b c"}, leaves: "a", leader: "b"},
		{reason: "a member that has not started may count", answers: []string{"a*: a b - -", "b: a b - -"}, leaves: "b", leader: "a", waits: "2 healthy etcd members besides b, there are 1"},
		{reason: "the last one", answers: []string{"a*: a"}, leaves: "a", leader: "a", waits: "the last one cannot be removed"},
		{reason: "one of two", answers: []string{"a*: a b", "b: a b"}, leaves: "a", leader: "a"},
		{reason: "one of two, and the other is gone", answers: []string{"a: a b", "b?"}, leaves: "a", waits: "besides a, there are 0"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var answers []EtcdMember
			for _, text := range tc.answers {
				answers = append(answers, parse(text))
			}
			cluster := etcdOf(answers)
			why := cluster.mayLose(tc.leaves)
			if (why == "") != (tc.waits == "") || !strings.Contains(why, tc.waits) {
				t.Errorf("it waits for %q, want %q", why, tc.waits)
			}
			if cluster.leader != tc.leader {
				t.Errorf("%q leads, want %q", cluster.leader, tc.leader)
			}
		})
	}
}
