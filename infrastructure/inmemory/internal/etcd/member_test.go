package etcd

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
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

// newGroup has a cluster that the first of the nodes founded.
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

// boot makes a machine.
func boot(t *testing.T, g *cloud.Group, name, uid string) Machine {
	t.Helper()
	m := Machine{Name: name, UID: types.UID(uid)}
	if _, err := g.EnsureMachine(cloud.MachineSpec{Name: name, UID: m.UID, ControlPlane: true}); err != nil {
		t.Fatal(err)
	}
	return m
}

func unplug(t *testing.T, g *cloud.Group, names ...string) {
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

func TestMembersLeaveByMemberRemoveAlone(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	for _, step := range []struct {
		reason  string
		do      func()
		members int
		alive   int
		serves  bool
	}{
		{"all is well", func() {}, 3, 3, true},
		{"a machine goes, its member stays", func() { unplug(t, g, "a") }, 3, 2, true},
		{"another one goes: the quorum is lost", func() { unplug(t, g, "b") }, 3, 1, false},
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

func TestRemovedMembersMakeRoom(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	drop(t, g, "a")
	unplug(t, g, "a")
	drop(t, g, "b")
	unplug(t, g, "b")
	if c := only(t, g); len(c.Members) != 1 || !c.HasQuorum() || leader(t, g) != "c" {
		t.Errorf("members that were removed first do not count: %+v", c)
	}
	s, err := load(g)
	if err != nil || len(s.Clusters[0].Removed) != 0 {
		t.Errorf("former members without a disk are still remembered: %+v, %v", s, err)
	}
}

func TestFormerMembersDoNotComeBack(t *testing.T) {
	g := newGroup(t, "a", "b")
	drop(t, g, "b")
	for reason, start := range map[string]func(*cloud.Group, Machine) error{"joining": Join, "founding": Found, "being restored": Restore} {
		if err := start(g, Machine{Name: "b", UID: "b"}); err != nil {
			t.Errorf("%s with the data of a former member: %v", reason, err)
		}
		if c := only(t, g); len(c.Members) != 1 {
			t.Errorf("%s brought a former member back: %+v", reason, c.Members)
		}
	}
	unplug(t, g, "b")
	if err := Join(g, boot(t, g, "b", "another")); err != nil {
		t.Errorf("another machine of this name has no old data: %v", err)
	}
}

func TestTheMemberLeftBehindIsInTheWay(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	unplug(t, g, "b")
	again := boot(t, g, "b", "another")
	if err := Join(g, again); !errors.Is(err, ErrPeerURLExists) {
		t.Errorf("a machine of the same name has the same peer URL: %v", err)
	}
	if c := only(t, g); c.named("b").Alive {
		t.Error("a machine of the same name is not the member")
	}
	drop(t, g, "b")
	if err := Join(g, again); err != nil {
		t.Errorf("once the member is removed it can join: %v", err)
	}
}

func TestASecondInitIsASplitBrain(t *testing.T) {
	g := newGroup(t, "a", "b")
	if err := Found(g, boot(t, g, "x", "x")); err != nil {
		t.Fatal(err)
	}
	all := clusters(t, g)
	if len(all) != 2 || all[0].ID == all[1].ID || len(all[0].Members) != 2 || len(all[1].Members) != 1 {
		t.Fatalf("two clusters that know nothing of each other, have %+v", all)
	}
	unplug(t, g, "a", "b")
	if err := Join(g, boot(t, g, "y", "y")); err != nil {
		t.Fatal(err)
	}
	if all = clusters(t, g); len(all[1].Members) != 2 {
		t.Errorf("who joins gets to the cluster that answers: %+v", all)
	}
}

func TestIdentitiesSurviveForgetting(t *testing.T) {
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
		t.Errorf("the same machines are the same members, -want +got:\n%s", diff)
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
	unplug(t, g, "a")
	before := only(t, g)
	again := newGroupAt(t, directory)
	if diff := cmp.Diff(before, only(t, again)); diff != "" {
		t.Errorf("after a restart, -want +got:\n%s", diff)
	}
	if err := Join(again, Machine{Name: "b", UID: "b"}); err != nil || len(only(t, again).Members) != 2 {
		t.Errorf("a former member came back after a restart: %v", err)
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
	second := func() string { // who is next by ID when a does not answer
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
		{"the first member leads", func() {}, "a", 0},
		{"another one is elected when it dies", dead("a"), second, 1},
		{"and stays leader when it is back", dead(), second, 0},
		{"without quorum there is no leader", dead("a", second), "", 0},
		{"with a quorum a leader is elected", dead(second), "", 1},
		{"leadership moves, though no time passes", func() {
			dead()()
			c := only(t, g)
			if err := lead(g, c.ID, c.named(other).ID); err != nil {
				t.Fatal(err)
			}
		}, other, 1},
		{"a removed member does not lead", func() { drop(t, g, other) }, "", 1},
	} {
		before := only(t, g).Term
		step.do()
		got := leader(t, g)
		if step.leader == "" && only(t, g).HasQuorum() {
			step.leader = got // Any leader will do.
			if got == "" {
				step.leader = "any"
			}
		}
		if got != step.leader || only(t, g).Term != before+step.terms {
			t.Errorf("%s: %q leads in term %d after %d, want %q and %d later", step.reason, got, only(t, g).Term, before, step.leader, step.terms)
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
		if got, err := Serves(g); got != test.want || err != nil {
			t.Errorf("%s: %v, %v", test.reason, got, err)
		}
	}
}

func TestJoinWithoutACluster(t *testing.T) {
	g := newGroup(t)
	if err := Join(g, boot(t, g, "a", "a")); !errors.Is(err, ErrNoCluster) {
		t.Errorf("there is nothing to join: %v", err)
	}
}
