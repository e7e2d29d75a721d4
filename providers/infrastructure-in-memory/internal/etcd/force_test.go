package etcd

import (
	"errors"
	"testing"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
)

// TestForceNew: one member of three goes on alone. Members that join later are kept if the call is repeated. Without fencing, the others are a
// second cluster when they get power again.
func TestForceNew(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	a, b := Machine{Name: "a", UID: "a"}, Machine{Name: "b", UID: "b"}
	check := func(reason string, count, members int, serves bool) {
		t.Helper()
		all := clusters(t, g)
		last := all[len(all)-1]
		if got, err := Serves(g); err != nil || got != serves || len(all) != count || len(last.Members) != members {
			t.Errorf("%s: serves = %v (%v), %d clusters, the last one of %d members; want %v, %d, %d", reason, got, err, len(all), len(last.Members),
				serves, count, members)
		}
	}
	if err := g.SetFaults(faults.Faults{DeadMachines: []string{"a", "c"}}); err != nil {
		t.Fatal(err)
	}
	check("the quorum is lost", 1, 3, false)
	if err := ForceNew(g, a, "one"); !errors.Is(err, ErrNoPower) {
		t.Errorf("a machine without power: %v", err)
	}
	if err := ForceNew(g, b, "one"); err != nil {
		t.Fatal(err)
	}
	check("b is alone", 2, 1, true)
	if err := Join(g, boot(t, g, "d", "d")); err != nil {
		t.Fatal(err)
	}
	if err := ForceNew(g, b, "one"); err != nil {
		t.Fatal(err)
	}
	check("the same call again keeps d", 2, 2, true)
	if err := g.SetFaults(faults.Faults{}); err != nil {
		t.Fatal(err)
	}
	if all := clusters(t, g); len(all) != 2 || !all[0].HasQuorum() || !all[1].HasQuorum() {
		t.Errorf("without fencing, it is a split brain: %+v", all)
	}
}
