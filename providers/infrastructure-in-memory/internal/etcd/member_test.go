package etcd

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
)

func newGroupAt(t *testing.T, directory string) *cloud.Group {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	g, err := cloud.New(cloud.Options{Clock: clock, Directory: directory}).EnsureGroup(types.NamespacedName{Namespace: "n", Name: "c"}, "uid")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// newGroup returns a group with an etcd cluster of these nodes.
func newGroup(t *testing.T, nodes ...string) *cloud.Group {
	t.Helper()
	g := newGroupAt(t, "")
	for i, node := range nodes {
		start := Join
		if i == 0 {
			start = Found
		}
		if err := start(g, boot(t, g, node, node)); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// boot creates a machine.
func boot(t *testing.T, g *cloud.Group, name, uid string) Machine {
	t.Helper()
	m := Machine{Name: name, UID: types.UID(uid)}
	if _, err := g.EnsureMachine(machines.Spec{Name: name, UID: m.UID, ControlPlane: true}); err != nil {
		t.Fatal(err)
	}
	return m
}

func deleteMachines(t *testing.T, g *cloud.Group, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := errors.Join(g.DeleteMachine(name), Forget(g, Machine{Name: name, UID: types.UID(name)})); err != nil {
			t.Fatal(err)
		}
	}
}

func clusters(t *testing.T, g *cloud.Group) []Cluster {
	t.Helper()
	all, err := Clusters(g)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func only(t *testing.T, g *cloud.Group) Cluster {
	t.Helper()
	all := clusters(t, g)
	if len(all) != 1 {
		t.Fatalf("%d etcd clusters, want one", len(all))
	}
	return all[0]
}

func (c Cluster) named(name string) Member {
	for _, m := range c.Members {
		if m.Machine.Name == name {
			return m
		}
	}
	return Member{}
}

func leader(t *testing.T, g *cloud.Group) string {
	t.Helper()
	c := only(t, g)
	m, _ := c.byID(c.Leader)
	return m.Machine.Name
}

func drop(t *testing.T, g *cloud.Group, name string) {
	t.Helper()
	c := only(t, g)
	if err := Remove(g, c.ID, c.named(name).ID); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyMemberRemoveRemovesMembers(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	for _, step := range []struct {
		reason  string
		do      func()
		members int
		alive   int
		serves  bool
	}{
		{"all machines run", func() {}, 3, 3, true},
		{"a machine is deleted, its member remains", func() { deleteMachines(t, g, "a") }, 3, 2, true},
		{"another machine is deleted, and quorum is lost", func() { deleteMachines(t, g, "b") }, 3, 1, false},
	} {
		step.do()
		c := only(t, g)
		serves, err := Serves(g)
		if err != nil || len(c.Members) != step.members || c.alive() != step.alive || serves != step.serves || c.HasQuorum() != step.serves {
			t.Errorf("%s: %d members, %d alive, serves = %v, %v", step.reason, len(c.Members), c.alive(), serves, err)
		}
	}
	if err := Join(g, boot(t, g, "d", "d")); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("joining without a quorum: %v", err)
	}
}

func TestRemovedMembersDoNotCount(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	drop(t, g, "a")
	deleteMachines(t, g, "a")
	drop(t, g, "b")
	deleteMachines(t, g, "b")
	if c := only(t, g); len(c.Members) != 1 || !c.HasQuorum() || leader(t, g) != "c" {
		t.Errorf("members after removal: %+v", c)
	}
	s, err := load(g)
	if err != nil || len(s.Clusters[0].Removed) != 0 {
		t.Errorf("removed members without a disk must be forgotten: %+v, %v", s, err)
	}
}

func TestRemovedMembersDoNotReturn(t *testing.T) {
	g := newGroup(t, "a", "b")
	drop(t, g, "b")
	for reason, start := range map[string]func(*cloud.Group, Machine) error{"joining": Join, "founding": Found, "being restored": Restore} {
		if err := start(g, Machine{Name: "b", UID: "b"}); err != nil {
			t.Errorf("%s with the data of a removed member: %v", reason, err)
		}
		if c := only(t, g); len(c.Members) != 1 {
			t.Errorf("%s restored a removed member: %+v", reason, c.Members)
		}
	}
	deleteMachines(t, g, "b")
	if err := Join(g, boot(t, g, "b", "another")); err != nil {
		t.Errorf("another machine with this name has no data: %v", err)
	}
}

func TestStaleMemberBlocksJoin(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	deleteMachines(t, g, "b")
	again := boot(t, g, "b", "another")
	if err := Join(g, again); !errors.Is(err, ErrPeerURLExists) {
		t.Errorf("joining with the peer URL of a stale member: %v", err)
	}
	if c := only(t, g); c.named("b").Alive {
		t.Error("a machine with the same name must not be the member")
	}
	drop(t, g, "b")
	if err := Join(g, again); err != nil {
		t.Errorf("joining when the member is removed: %v", err)
	}
}

func TestSecondInitIsSplitBrain(t *testing.T) {
	g := newGroup(t, "a", "b")
	if err := Found(g, boot(t, g, "x", "x")); err != nil {
		t.Fatal(err)
	}
	all := clusters(t, g)
	if len(all) != 2 || all[0].ID == all[1].ID || len(all[0].Members) != 2 || len(all[1].Members) != 1 {
		t.Fatalf("want two independent clusters, have %+v", all)
	}
	deleteMachines(t, g, "a", "b")
	if err := Join(g, boot(t, g, "y", "y")); err != nil {
		t.Fatal(err)
	}
	if all = clusters(t, g); len(all[1].Members) != 2 {
		t.Errorf("a machine must join the cluster that responds: %+v", all)
	}
}

func TestIdentitiesAreStable(t *testing.T) {
	before := newGroup(t, "a", "b", "c")
	after := newGroupAt(t, "")
	for _, name := range []string{"c", "a", "b"} {
		if err := Restore(after, boot(t, after, name, name)); err != nil {
			t.Fatal(err)
		}
	}
	type identity struct {
		ID      uint64
		Members []Member
	}
	strip := func(c Cluster) identity { return identity{c.ID, c.Members} }
	if diff := cmp.Diff(strip(only(t, before)), strip(only(t, after))); diff != "" {
		t.Errorf("members of the same machines, -want +got:\n%s", diff)
	}
}

func TestStateIsDurable(t *testing.T) {
	directory := t.TempDir()
	g := newGroupAt(t, directory)
	for i, start := range []func(*cloud.Group, Machine) error{Found, Join, Join} {
		name := string(rune('a' + i))
		if err := start(g, boot(t, g, name, name)); err != nil {
			t.Fatal(err)
		}
	}
	drop(t, g, "b")
	deleteMachines(t, g, "a")
	before := only(t, g)
	again := newGroupAt(t, directory)
	if diff := cmp.Diff(before, only(t, again)); diff != "" {
		t.Errorf("after a restart, -want +got:\n%s", diff)
	}
	if err := Join(again, Machine{Name: "b", UID: "b"}); err != nil || len(only(t, again).Members) != 2 {
		t.Errorf("a removed member was restored after a restart: %v", err)
	}
}

func TestLeadership(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	dead := func(machines ...string) func() {
		return func() {
			if err := g.SetFaults(faults.Faults{DeadMachines: machines}); err != nil {
				t.Fatal(err)
			}
		}
	}
	second := func() string { // the next member by ID, if a does not respond
		c := only(t, g)
		for _, m := range c.Members {
			if m.Machine.Name != "a" {
				return m.Machine.Name
			}
		}
		return ""
	}()
	other := map[string]string{"b": "c", "c": "b"}[second]
	for _, step := range []struct {
		reason string
		do     func()
		leader string
		terms  uint64
	}{
		{"the first member is the leader", func() {}, "a", 0},
		{"another one is elected if it fails", dead("a"), second, 1},
		{"the elected leader remains leader", dead(), second, 0},
		{"without quorum there is no leader", dead("a", second), "", 0},
		{"with a quorum a leader is elected", dead(second), "", 1},
		{"leadership is transferred", func() {
			dead()()
			c := only(t, g)
			if err := lead(g, c.ID, c.named(other).ID); err != nil {
				t.Fatal(err)
			}
		}, other, 1},
		{"a removed member is not the leader", func() { drop(t, g, other) }, "", 1},
	} {
		before := only(t, g).Term
		step.do()
		got := leader(t, g)
		if step.leader == "" && only(t, g).HasQuorum() {
			step.leader = got // Any leader is correct.
			if got == "" {
				step.leader = "any"
			}
		}
		if got != step.leader || only(t, g).Term != before+step.terms {
			t.Errorf("%s: leader %q in term %d, %d before; want %q, and the term to increase by %d", step.reason, got, only(t, g).Term, before,
				step.leader, step.terms)
		}
	}
}

func TestQuorum(t *testing.T) {
	for _, test := range []struct {
		reason string
		nodes  []string
		dead   []string
		want   bool
	}{
		{"a cluster without members", nil, nil, true},
		{"one of one", []string{"a"}, nil, true},
		{"none of one", []string{"a"}, []string{"a"}, false},
		{"one of two is not a majority", []string{"a", "b"}, []string{"a"}, false},
		{"two of three", []string{"a", "b", "c"}, []string{"a"}, true},
		{"dead members of other clusters do not count", []string{"a"}, []string{"x", "y"}, true},
	} {
		g := newGroup(t, test.nodes...)
		if err := g.SetFaults(faults.Faults{DeadMachines: test.dead}); err != nil {
			t.Fatal(err)
		}
		if got, err := Serves(g); got != test.want || err != nil {
			t.Errorf("%s: %v, %v", test.reason, got, err)
		}
	}
}

func TestJoinWithoutACluster(t *testing.T) {
	g := newGroup(t)
	if err := Join(g, boot(t, g, "a", "a")); !errors.Is(err, ErrNoCluster) {
		t.Errorf("joining without a cluster: %v", err)
	}
}
