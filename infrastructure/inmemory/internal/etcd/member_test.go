package etcd

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
)

func newGroup(t *testing.T, nodes ...string) *cloud.Group {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	g, err := cloud.New(cloud.Options{Clock: clock}).EnsureGroup(types.NamespacedName{Namespace: "n", Name: "c"}, "uid")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		join(t, g, node)
	}
	return g
}

func join(t *testing.T, g *cloud.Group, node string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "etcd-" + node, Namespace: "kube-system", Labels: map[string]string{"component": "etcd"}, UID: cloud.UID(node),
	}}
	if err := Join(g, pod); err != nil {
		t.Fatal(err)
	}
}

func state(t *testing.T, g *cloud.Group) Cluster {
	t.Helper()
	c, err := State(g)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func leader(t *testing.T, g *cloud.Group) string {
	t.Helper()
	c := state(t, g)
	m, _ := c.byID(c.Leader)
	return m.Name
}

func TestIdentitiesSurviveARestart(t *testing.T) {
	if diff := cmp.Diff(state(t, newGroup(t, "a", "b", "c")), state(t, newGroup(t, "a", "b", "c")), cmp.AllowUnexported(Cluster{}, Member{})); diff != "" {
		t.Errorf("the same Pods are the same members: %s", diff)
	}
}

func TestLeadership(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	dead := func(machines ...string) func() {
		return func() {
			if err := g.SetFaults(cloud.Faults{DeadMachines: machines}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		reason string
		do     func()
		leader string
	}{
		{"the first member leads", func() {}, "a"},
		{"leadership moves, though no time passes", func() {
			c := state(t, g)
			b, _ := c.byName("b")
			if err := lead(g, c, b); err != nil {
				t.Fatal(err)
			}
		}, "b"},
		{"without a quorum nobody leads", dead("a", "b"), ""},
		{"with one again somebody does", dead("b"), "a"},
		{"who led last leads when it is back", dead(), "b"},
		{"a removed member does not lead", func() {
			b, _ := state(t, g).byName("b")
			if err := remove(g, b); err != nil {
				t.Fatal(err)
			}
		}, "a"},
		{"and does not come back by joining", func() { join(t, g, "b") }, "a"},
	} {
		step.do()
		if got := leader(t, g); got != step.leader {
			t.Errorf("%s: %q leads, want %q", step.reason, got, step.leader)
		}
	}
	if c := state(t, g); c.Term <= firstTerm || len(c.Members) != 2 {
		t.Errorf("term %d, %d members", c.Term, len(c.Members))
	}
}

func TestQuorum(t *testing.T) {
	for _, test := range []struct {
		reason string
		nodes  []string
		dead   []string
		want   bool
	}{
		{"a cluster in the making", nil, nil, true},
		{"one of one", []string{"a"}, nil, true},
		{"none of one", []string{"a"}, []string{"a"}, false},
		{"one of two is half, not more", []string{"a", "b"}, []string{"a"}, false},
		{"two of three", []string{"a", "b", "c"}, []string{"a"}, true},
		{"the dead of other clusters do not count", []string{"a"}, []string{"x", "y"}, true},
	} {
		g := newGroup(t, test.nodes...)
		if err := g.SetFaults(cloud.Faults{DeadMachines: test.dead}); err != nil {
			t.Fatal(err)
		}
		if got := state(t, g).HasQuorum(); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
}
