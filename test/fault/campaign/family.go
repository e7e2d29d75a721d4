package campaign

import "sigs.k8s.io/cluster-api/test/fault/script"

// Family is a kind of faults: which runs there are of a scenario whose calm run is known.
type Family struct {
	// Name is how it is asked for.
	Name string
	// Faults returns the faults of each run.
	Faults func(calm *Result) [][]script.Fault
}

// Families returns all of them, the most valuable first.
func Families() []Family {
	return []Family{
		{"kill", atEveryWrite(script.KillAfter, script.KillBefore)},
		{"ambiguous", atEveryWrite(script.LoseAnswer, script.TimeOut, script.Fail500, script.Conflict, script.TooMany, script.Reject)},
	}
}

// atEveryWrite has one run for every write of the calm run and every action.
func atEveryWrite(actions ...script.Action) func(*Result) [][]script.Fault {
	return func(calm *Result) [][]script.Fault {
		var all [][]script.Fault
		for _, write := range calm.Records {
			for _, do := range actions {
				all = append(all, []script.Fault{{When: write.Kind(), Nth: write.Nth, Do: do}})
			}
		}
		return all
	}
}
