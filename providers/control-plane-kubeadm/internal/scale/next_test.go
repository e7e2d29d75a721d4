package scale

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/providers/internal/preflight"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// parse parses Machines, oldest first, such as "a@x,outdated,unwanted": name, failure domain, and what is true of it.
func parse(t *testing.T, words string) []Machine {
	t.Helper()
	var all []Machine
	for i, word := range strings.Fields(words) {
		facts := strings.Split(word, ",")
		name, domain, _ := strings.Cut(facts[0], "@")
		m := Machine{Name: name, FailureDomain: domain, HasNode: true, Created: epoch.Add(time.Duration(i) * time.Hour)}
		for _, fact := range facts[1:] {
			switch fact {
			case "outdated":
				m.Outdated = true
			case "held":
				m.Deleting, m.Held = true, true
			case "unwanted":
				m.Unwanted = true
			case "deleting":
				m.Deleting = true
			case "broken":
				m.Broken, m.Problems = true, []string{"broken"}
			case "starting":
				m.HasNode, m.Problems = false, []string{"no Node"}
			case "marked":
				m.Marked = true
			case "updating":
				m.Updating = true
			case "updatable":
				m.Outdated, m.Updatable = true, true
			default:
				t.Fatalf("unknown fact %q", fact)
			}
		}
		all = append(all, m)
	}
	return all
}

// blocked returns the failure of one check.
func blocked(machine, check, reason string) []preflight.Failure {
	return []preflight.Failure{{Check: check, Machine: machine, Reason: reason}}
}

func TestNext(t *testing.T) {
	cases := []struct {
		reason   string
		machines string
		desired  int
		surge    int
		domains  []string
		away     string
		before   bool
		orphaned []string
		want     Action
	}{
		{reason: "the first Machine needs no checks", desired: 3, away: "never there", want: Action{Kind: Initialize}},
		{reason: "the first Machine is placed in the first failure domain", desired: 1, domains: []string{"y", "x"}, want: Action{Kind: Initialize, FailureDomain: "x"}},
		{
			reason: "a cluster that has lost all its Machines is not initialized again", desired: 3, before: true, away: "gone",
			want: Action{Kind: ScaleUp, Blocked: blocked("", WorkloadReachable, "gone")},
		},
		{reason: "a Machine can join if the workload cluster is reachable", desired: 3, before: true, domains: []string{"x"}, want: Action{Kind: ScaleUp, FailureDomain: "x"}},
		{reason: "as many as desired", machines: "a b c", desired: 3, want: Action{Kind: Nothing}},
		{reason: "an unhealthy Machine is not replaced here", machines: "a b,broken c", desired: 3, want: Action{Kind: Nothing}},
		{reason: "scale up", machines: "a b", desired: 3, want: Action{Kind: ScaleUp}},
		{reason: "scale up in the failure domain with the fewest Machines", machines: "a@x b@y c@x", desired: 5, domains: []string{"x", "y"}, want: Action{Kind: ScaleUp, FailureDomain: "y"}},
		{reason: "scale up in an empty failure domain", machines: "a@x b@y c@x", desired: 5, domains: []string{"x", "y", "z"}, want: Action{Kind: ScaleUp, FailureDomain: "z"}},
		{
			reason: "not while a Machine is being provisioned", machines: "a b,starting", desired: 3,
			want: Action{Kind: ScaleUp, Blocked: blocked("b", MachinesHealthy, "no Node")},
		},
		{
			reason: "not while a Machine is being deleted", machines: "a b,deleting,broken", desired: 3,
			want: Action{Kind: ScaleUp, Blocked: blocked("b", NoMachineDeleting, "it is being deleted")},
		},
		{
			reason: "not while the workload cluster is unreachable", machines: "a", desired: 3, away: "gone",
			want: Action{Kind: ScaleUp, Blocked: blocked("", WorkloadReachable, "gone")},
		},
		{reason: "scale down: the oldest Machine", machines: "a b c", desired: 1, want: Action{Kind: ScaleDown, Machine: "a"}},
		{reason: "scale down: the Machine that a user has marked", machines: "a b,unwanted c", desired: 1, want: Action{Kind: ScaleDown, Machine: "b"}},
		{reason: "scale down: a broken Machine before healthy ones", machines: "a b,broken c", desired: 1, want: Action{Kind: ScaleDown, Machine: "b"}},
		{reason: "scale down: a marked Machine before a broken one", machines: "a,broken b,unwanted c", desired: 1, want: Action{Kind: ScaleDown, Machine: "b", Blocked: blocked("a", MachinesHealthy, "broken")}},
		{reason: "scale down: a Machine that is joining is not broken: etcd may wait for it", machines: "a b c,starting", desired: 1, want: Action{Kind: ScaleDown, Machine: "a", Blocked: blocked("c", MachinesHealthy, "no Node")}},
		{
			reason: "scale down: from the failure domain with the most Machines", machines: "a@x b@y c@y", desired: 1, domains: []string{"x", "y"},
			want: Action{Kind: ScaleDown, Machine: "b"},
		},
		{
			reason: "scale down: from a failure domain that is no longer offered", machines: "a@x b@x c@old", desired: 1, domains: []string{"x", "y"},
			want: Action{Kind: ScaleDown, Machine: "c"},
		},
		{
			reason: "the deleted Machine may be unhealthy, the others may not", machines: "a,broken b,unwanted,broken c", desired: 1,
			want: Action{Kind: ScaleDown, Machine: "b", Blocked: blocked("a", MachinesHealthy, "broken")},
		},
		{reason: "a rollout with surge creates first", machines: "a,outdated", desired: 1, surge: 1, want: Action{Kind: ScaleUp, Rollout: true}},
		{
			reason: "a rollout places new Machines according to those that are up to date", machines: "a@x,outdated b@y", desired: 2, surge: 1, domains: []string{"x", "y"},
			want: Action{Kind: ScaleUp, Rollout: true, FailureDomain: "x"},
		},
		{reason: "a rollout with surge deletes after it has created", machines: "a,outdated b", desired: 1, surge: 1, want: Action{Kind: ScaleDown, Rollout: true, Machine: "a"}},
		{reason: "a rollout waits for the new Machine", machines: "a,outdated b,starting", desired: 1, surge: 1,
			want: Action{Kind: ScaleDown, Rollout: true, Machine: "a", Blocked: blocked("b", MachinesHealthy, "no Node")}},
		{reason: "a rollout without surge deletes first", machines: "a,outdated b,outdated c,outdated", desired: 3, want: Action{Kind: ScaleDown, Rollout: true, Machine: "a"}},
		{reason: "a rollout without surge creates after it has deleted", machines: "b,outdated c,outdated", desired: 3, want: Action{Kind: ScaleUp, Rollout: true}},
		{reason: "a rollout deletes broken Machines first", machines: "a,outdated b,outdated,broken c,outdated d", desired: 3, surge: 1, want: Action{Kind: ScaleDown, Rollout: true, Machine: "b"}},
		{reason: "a rollout deletes outdated Machines before broken ones that are up to date", machines: "a,broken b,outdated c d", desired: 3, surge: 1, want: Action{Kind: ScaleDown, Rollout: true, Machine: "b", Blocked: blocked("a", MachinesHealthy, "broken")}},
		{reason: "a rollout deletes marked Machines that are outdated first", machines: "a,unwanted b,outdated,unwanted c d", desired: 3, surge: 1, want: Action{Kind: ScaleDown, Rollout: true, Machine: "b"}},
		{reason: "while the last Machine is held, another one joins", machines: "a,held", desired: 1, before: true, want: Action{Kind: ScaleUp}},
		{
			reason: "not while the workload cluster is unreachable, even if the last Machine is held", machines: "a,held", desired: 3, before: true, away: "gone",
			want: Action{Kind: ScaleUp, Blocked: blocked("", WorkloadReachable, "gone")},
		},
		{
			reason: "no other Machine joins while one of several is held", machines: "a,held b", desired: 3, before: true,
			want: Action{Kind: ScaleUp, Blocked: blocked("a", NoMachineDeleting, "it is being deleted")},
		},
		{
			reason: "after another one has joined, nothing happens until the held Machine is deleted", machines: "a,held b", desired: 1, before: true,
			want: Action{Kind: ScaleDown, Machine: "b", Blocked: blocked("a", NoMachineDeleting, "it is being deleted")},
		},
		{reason: "with zero replicas, no other Machine joins", machines: "a,held", desired: 0, before: true, want: Action{Kind: ScaleDown, Blocked: blocked("a", NoMachineDeleting, "it is being deleted")}},
		{
			reason: "no Machine joins while an etcd member is orphaned", machines: "a b", desired: 3, orphaned: []string{"x"},
			want: Action{Kind: ScaleUp, Blocked: blocked("", NoOrphanedMembers, `etcd member "x" has no Machine`)},
		},
		{reason: "orphaned etcd members do not prevent a deletion", machines: "a b c", desired: 1, orphaned: []string{"x"}, want: Action{Kind: ScaleDown, Machine: "a"}},
		{reason: "an outdated Machine that is being deleted requires no rollout", machines: "a,outdated,deleting b", desired: 2, surge: 1, want: Action{Kind: Nothing}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			in := Input{Desired: tc.desired, MaxSurge: tc.surge, Machines: parse(t, tc.machines), FailureDomains: tc.domains, Unreachable: tc.away, Initialized: tc.before, OrphanedMembers: tc.orphaned}
			if diff := cmp.Diff(tc.want, Next(in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Machines that can be updated in place.
func TestNextInPlace(t *testing.T) {
	cases := []struct {
		reason         string
		machines       string
		desired, surge int
		want           Action
	}{
		{reason: "without surge, a Machine that can be updated in place is not deleted", machines: "a,updatable b,updatable c,updatable", desired: 3, want: Action{Kind: ScaleDown, Rollout: true, Machine: "a", Updatable: true}},
		{reason: "with surge, a new Machine comes first", machines: "a,updatable b,updatable c,updatable", desired: 3, surge: 1, want: Action{Kind: ScaleUp, Rollout: true}},
		{reason: "with surge, the others can be updated in place then", machines: "a,updatable b,updatable c,updatable d", desired: 3, surge: 1, want: Action{Kind: ScaleDown, Rollout: true, Machine: "a", Updatable: true}},
		{reason: "a Machine in whose place another one is up to date is deleted", machines: "a,updatable b c d", desired: 3, surge: 1, want: Action{Kind: ScaleDown, Rollout: true, Machine: "a"}},
		{reason: "a Machine that a user has marked is deleted", machines: "a,updatable b,updatable,unwanted c,updatable", desired: 3, want: Action{Kind: ScaleDown, Rollout: true, Machine: "b"}},
		{reason: "a broken Machine is replaced", machines: "a,updatable b,updatable,broken c,updatable", desired: 3, want: Action{Kind: ScaleDown, Rollout: true, Machine: "b"}},
		{reason: "a Machine that a health check has marked is replaced", machines: "a,updatable,marked b c,updatable", desired: 3, want: Action{Kind: ScaleDown, Rollout: true, Machine: "a"}},
		{
			reason: "one Machine after the other is updated in place", machines: "b,updatable c,updatable a,updating", desired: 3,
			want: Action{Kind: ScaleDown, Rollout: true, Machine: "b", Updatable: true, Blocked: blocked("a", NoMachineUpdating, "it is being updated in place")},
		},
		{
			reason: "no Machine joins while another one is updated in place", machines: "a b,updating", desired: 3,
			want: Action{Kind: ScaleUp, Blocked: blocked("b", NoMachineUpdating, "it is being updated in place")},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			in := Input{Desired: tc.desired, MaxSurge: tc.surge, Machines: parse(t, tc.machines)}
			if diff := cmp.Diff(tc.want, Next(in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// From every state, the actions lead to the desired number of Machines that are up to date, one change at a time, and never
// with too few Machines.
func TestPlansConverge(t *testing.T) {
	for desired := 1; desired <= 5; desired += 2 {
		for count := range 7 {
			for old := 0; old <= count; old++ {
				for surge := range 2 {
					if surge == 0 && desired < 3 {
						continue // invalid
					}
					follow(t, desired, count, old, surge)
				}
			}
		}
	}
}

func follow(t *testing.T, desired, count, old, surge int) {
	t.Helper()
	start := fmt.Sprintf("desired %d, %d Machines, %d outdated, surge %d", desired, count, old, surge)
	in := Input{Desired: desired, MaxSurge: surge, FailureDomains: []string{"x", "y", "z"}}
	made := 0
	add := func(outdated bool, domain string) {
		made++
		in.Machines = append(in.Machines, Machine{
			Name: fmt.Sprintf("m%d", made), Created: epoch.Add(time.Duration(made) * time.Second), Outdated: outdated, FailureDomain: domain,
		})
	}
	for i := range count {
		add(i < old, "x")
	}
	least := min(count, desired-1+surge)
	for range 100 {
		a := Next(in)
		switch a.Kind {
		case Nothing:
			if len(in.Machines) != desired || slices.ContainsFunc(in.Machines, func(m Machine) bool { return m.Outdated }) {
				t.Errorf("%s: it ends with %+v", start, in.Machines)
			}
			return
		case Initialize, ScaleUp:
			add(false, a.FailureDomain)
		case ScaleDown:
			in.Machines = slices.DeleteFunc(in.Machines, func(m Machine) bool { return m.Name == a.Machine })
		}
		if len(in.Machines) < least || len(in.Machines) > max(count, desired+surge) {
			t.Errorf("%s: %s leads to %d Machines", start, a.Kind, len(in.Machines))
		}
	}
	t.Errorf("%s: no end", start)
}

// TestReplacement checks when a Machine that was remediated is replaced although others are unhealthy.
func TestReplacement(t *testing.T) {
	blocked := func(machines ...string) []preflight.Failure {
		var all []preflight.Failure
		for i := 0; i < len(machines); i += 2 {
			all = append(all, preflight.Failure{Check: MachinesHealthy, Machine: machines[i], Reason: machines[i+1]})
		}
		return all
	}
	for _, tc := range []struct {
		reason   string
		machines string
		desired  int
		noQuorum string
		want     Action
	}{
		{reason: "others are unhealthy", machines: "a b,broken c d", desired: 5, want: Action{Kind: ScaleUp}},
		{
			reason: "not if etcd could lose its quorum", machines: "a b,broken", desired: 3, noQuorum: "2 healthy etcd members (found 1)",
			want: Action{Kind: ScaleUp, Blocked: blocked("b", "broken")},
		},
		{reason: "not without a healthy Machine", machines: "a,broken b,broken", desired: 3, want: Action{Kind: ScaleUp, Blocked: blocked("a", "broken", "b", "broken")}},
		{reason: "not while another one joins", machines: "a b,starting c d", desired: 5, want: Action{Kind: ScaleUp, Blocked: blocked("b", "no Node")}},
		{reason: "unless it was given up", machines: "a b,starting,marked c d", desired: 5, want: Action{Kind: ScaleUp}},
		{
			reason: "no Machine is deleted while another one is unhealthy", machines: "a b,broken c,outdated", desired: 2,
			want: Action{Kind: ScaleDown, Rollout: true, Machine: "c", Blocked: blocked("b", "broken")},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			in := Input{Desired: tc.desired, Machines: parse(t, tc.machines), Initialized: true, Replacing: true, NoQuorum: tc.noQuorum}
			if diff := cmp.Diff(tc.want, Next(in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestPendingVersion is about a version that is about to change: Machines that are created now would be replaced at once.
func TestPendingVersion(t *testing.T) {
	const reason = "waiting for a version upgrade to v1.31.0 to be propagated"
	for machines, kind := range map[string]Kind{"a": ScaleUp, "a b c d e": ScaleDown, "a b c": Nothing} {
		got := Next(Input{Desired: 3, MaxSurge: 1, Initialized: true, Machines: parse(t, machines), PendingVersion: "v1.31.0"})
		if got.Kind != kind || (got.Blockers() == reason) != (kind != Nothing) {
			t.Errorf("%s: %s, blocked by %q", machines, got.Kind, got.Blockers())
		}
	}
}
