package plan

import (
	"fmt"
	"strings"
)

// Check names a condition for changing the number of Machines.
type Check string

const (
	// WorkloadReachable is that the cluster answers: what is not seen cannot be judged.
	WorkloadReachable Check = "WorkloadReachable"
	// NoMachineDeleting is that there is one change at a time; a deletion may still take its etcd member along.
	NoMachineDeleting Check = "NoMachineDeleting"
	// MachinesHealthy is that every Machine that stays has a Node, and its components and etcd member are known to work.
	// What is not known counts as not working.
	MachinesHealthy Check = "MachinesHealthy"
	// NoStrays is that all etcd members have a Machine: etcd takes no new member while one of its own is gone without having left.
	NoStrays Check = "NoStrays"
)

// Failure is a check that does not pass, with the Machine it is about, if it is about one, and why.
type Failure struct {
	Check   Check
	Machine string
	Reason  string
}

// preflight returns every check that fails, in the order of the Machines. The Machine that is to be deleted need not be
// healthy.
func preflight(in Input, a Action) []Failure {
	var failed []Failure
	if in.Unreachable != "" {
		failed = append(failed, Failure{Check: WorkloadReachable, Reason: in.Unreachable})
	}
	for _, m := range in.Machines {
		switch {
		case m.Held && in.lastIsHeld():
		case m.Deleting:
			failed = append(failed, Failure{NoMachineDeleting, m.Name, "it is being deleted"})
		case m.Name != a.Machine && len(m.Problems) > 0:
			failed = append(failed, Failure{MachinesHealthy, m.Name, strings.Join(m.Problems, ", ")})
		}
	}
	if a.Kind == ScaleUp {
		for _, name := range in.Strays {
			failed = append(failed, Failure{Check: NoStrays, Reason: fmt.Sprintf("etcd member %q has no Machine", name)})
		}
	}
	return failed
}

// String is the failure in words.
func (f Failure) String() string {
	if f.Machine == "" {
		return f.Reason
	}
	return "Machine " + f.Machine + ": " + f.Reason
}
