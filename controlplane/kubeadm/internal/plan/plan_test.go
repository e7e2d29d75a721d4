package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// parse reads Machines, oldest first, from words such as "a@x,outdated,unwanted": name, failure domain, facts.
func parse(t *testing.T, words string) []Machine {
	t.Helper()
	var all []Machine
	for i, word := range strings.Fields(words) {
		facts := strings.Split(word, ",")
		name, domain, _ := strings.Cut(facts[0], "@")
		m := Machine{Name: name, FailureDomain: domain, Created: epoch.Add(time.Duration(i) * time.Hour)}
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
				m.Problems = []string{"no Node"}
			default:
				t.Fatalf("unknown fact %q", fact)
			}
		}
		all = append(all, m)
	}
	return all
}

func TestNext(t *testing.T) {
	blocked := func(machine string, check Check, reason string) []Failure { return []Failure{{check, machine, reason}} }
	cases := []struct {
		reason   string
		machines string
		desired  int
		surge    int
		domains  []string
		away     string
		before   bool
		strays   []string
		want     Action
	}{
		{reason: "the first Machine needs no checks", desired: 3, away: "never there", want: Action{Kind: Initialise}},
		{reason: "the first Machine goes to the first failure domain", desired: 1, domains: []string{"y", "x"}, want: Action{Kind: Initialise, FailureDomain: "x"}},
		{
			reason: "a cluster that has lost all its Machines is not initialised again", desired: 3, before: true, away: "gone",
			want: Action{Kind: ScaleUp, Blocked: blocked("", WorkloadReachable, "gone")},
		},
		{reason: "a Machine can join it if its API is served by somebody", desired: 3, before: true, domains: []string{"x"}, want: Action{Kind: ScaleUp, FailureDomain: "x"}},
		{reason: "as wanted", machines: "a b c", desired: 3, want: Action{Kind: Nothing}},
		{reason: "an unhealthy Machine alone is no reason to act", machines: "a b,broken c", desired: 3, want: Action{Kind: Nothing}},
		{reason: "one more", machines: "a b", desired: 3, want: Action{Kind: ScaleUp}},
		{reason: "one more, in the emptiest failure domain", machines: "a@x b@y c@x", desired: 5, domains: []string{"x", "y"}, want: Action{Kind: ScaleUp, FailureDomain: "y"}},
		{reason: "a Machine that is being deleted counts in no failure domain", machines: "a@x b@y c@x", desired: 5, domains: []string{"x", "y", "z"}, want: Action{Kind: ScaleUp, FailureDomain: "z"}},
		{
			reason: "not while one starts", machines: "a b,starting", desired: 3,
			want: Action{Kind: ScaleUp, Blocked: blocked("b", MachinesHealthy, "no Node")},
		},
		{
			reason: "not while one is being deleted", machines: "a b,deleting,broken", desired: 3,
			want: Action{Kind: ScaleUp, Blocked: blocked("b", NoMachineDeleting, "it is being deleted")},
		},
		{
			reason: "not without seeing the workload cluster", machines: "a", desired: 3, away: "gone",
			want: Action{Kind: ScaleUp, Blocked: blocked("", WorkloadReachable, "gone")},
		},
		{reason: "one less: the oldest", machines: "a b c", desired: 1, want: Action{Kind: ScaleDown, Machine: "a"}},
		{reason: "one less: what a person marked", machines: "a b,unwanted c", desired: 1, want: Action{Kind: ScaleDown, Machine: "b"}},
		{
			reason: "one less: from the fullest failure domain", machines: "a@x b@y c@y", desired: 1, domains: []string{"x", "y"},
			want: Action{Kind: ScaleDown, Machine: "b"},
		},
		{
			reason: "one less: from a failure domain that is not offered any more", machines: "a@x b@x c@old", desired: 1, domains: []string{"x", "y"},
			want: Action{Kind: ScaleDown, Machine: "c"},
		},
		{
			reason: "what is marked may be unhealthy, the others may not", machines: "a,broken b,unwanted,broken c", desired: 1,
			want: Action{Kind: ScaleDown, Machine: "b", Blocked: blocked("a", MachinesHealthy, "broken")},
		},
		{reason: "a rollout with surge adds first", machines: "a,outdated", desired: 1, surge: 1, want: Action{Kind: ScaleUp, Rollout: true}},
		{
			reason: "a rollout places by Machines that stay", machines: "a@x,outdated b@y", desired: 2, surge: 1, domains: []string{"x", "y"},
			want: Action{Kind: ScaleUp, Rollout: true, FailureDomain: "x"},
		},
		{reason: "a rollout with surge removes once it has added", machines: "a,outdated b", desired: 1, surge: 1, want: Action{Kind: ScaleDown, Rollout: true, Machine: "a"}},
		{
			reason: "a rollout waits for the new Machine", machines: "a,outdated b,starting", desired: 1, surge: 1,
			want: Action{Kind: ScaleDown, Rollout: true, Machine: "a", Blocked: blocked("b", MachinesHealthy, "no Node")},
		},
		{reason: "a rollout without surge removes first", machines: "a,outdated b,outdated c,outdated", desired: 3, want: Action{Kind: ScaleDown, Rollout: true, Machine: "a"}},
		{reason: "a rollout without surge adds when one is missing", machines: "b,outdated c,outdated", desired: 3, want: Action{Kind: ScaleUp, Rollout: true}},
		{reason: "a rollout removes broken Machines first", machines: "a,outdated b,outdated,broken c,outdated d", desired: 3, surge: 1, want: Action{Kind: ScaleDown, Rollout: true, Machine: "b"}},
		{reason: "a rollout removes marked outdated Machines before marked ones", machines: "a,unwanted b,outdated,unwanted c d", desired: 3, surge: 1, want: Action{Kind: ScaleDown, Rollout: true, Machine: "b"}},
		{reason: "the last member of etcd is held until another Machine has joined", machines: "a,held", desired: 1, before: true, want: Action{Kind: ScaleUp}},
		{
			reason: "which takes a workload cluster", machines: "a,held", desired: 3, before: true, away: "gone",
			want: Action{Kind: ScaleUp, Blocked: blocked("", WorkloadReachable, "gone")},
		},
		{
			reason: "one that is held is no reason as long as others stay", machines: "a,held b", desired: 3, before: true,
			want: Action{Kind: ScaleUp, Blocked: blocked("a", NoMachineDeleting, "it is being deleted")},
		},
		{
			reason: "once another one has joined, nothing else happens until the one that is held is gone", machines: "a,held b", desired: 1, before: true,
			want: Action{Kind: ScaleDown, Machine: "b", Blocked: blocked("a", NoMachineDeleting, "it is being deleted")},
		},
		{reason: "nothing is held up for a control plane without Machines", machines: "a,held", desired: 0, before: true, want: Action{Kind: ScaleDown, Blocked: blocked("a", NoMachineDeleting, "it is being deleted")}},
		{
			reason: "etcd takes no new member while one is gone", machines: "a b", desired: 3, strays: []string{"x"},
			want: Action{Kind: ScaleUp, Blocked: blocked("", NoStrays, `etcd member "x" has no Machine`)},
		},
		{reason: "that keeps none from going", machines: "a b c", desired: 1, strays: []string{"x"}, want: Action{Kind: ScaleDown, Machine: "a"}},
		{reason: "an outdated Machine on its way out asks for no further rollout", machines: "a,outdated,deleting b", desired: 2, surge: 1, want: Action{Kind: Nothing}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			in := Input{Desired: tc.desired, MaxSurge: tc.surge, Machines: parse(t, tc.machines), FailureDomains: tc.domains, Unreachable: tc.away, Initialised: tc.before, Strays: tc.strays}
			if diff := cmp.Diff(tc.want, Next(in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Whatever the start, following the plan ends with the wanted number of current Machines, with one change at a time and
// never fewer than is allowed.
func TestPlansConverge(t *testing.T) {
	for desired := 1; desired <= 5; desired += 2 {
		for count := range 7 {
			for old := 0; old <= count; old++ {
				for surge := range 2 {
					if surge == 0 && desired < 3 {
						continue // refused at admission
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
		case Initialise, ScaleUp:
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
