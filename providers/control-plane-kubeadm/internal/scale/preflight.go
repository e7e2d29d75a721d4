package scale

import (
	"fmt"
	"strings"
)

// Check names a condition for changing the number of Machines.
type Check string

const (
	// WorkloadReachable passes if the workload cluster responds.
	WorkloadReachable Check = "WorkloadReachable"
	// NoMachineDeleting passes if no Machine is being deleted: its etcd member may not have been removed yet, and there is one
	// change of membership at a time.
	NoMachineDeleting Check = "NoMachineDeleting"
	// MachinesHealthy passes if all other Machines have a Node, healthy components and a healthy etcd member. Unknown is not
	// healthy.
	MachinesHealthy Check = "MachinesHealthy"
	// NoOrphanedMembers passes if every etcd member has a Machine: members without one are removed before another member joins.
	NoOrphanedMembers Check = "NoOrphanedMembers"
)

// Failure is a check that fails, with the reason, and the Machine if it is about one.
type Failure struct {
	Check   Check
	Machine string
	Reason  string
}

// preflight returns all checks that fail, in the order of the Machines. The Machine that the action deletes need not be
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
		for _, name := range in.OrphanedMembers {
			failed = append(failed, Failure{Check: NoOrphanedMembers, Reason: fmt.Sprintf("etcd member %q has no Machine", name)})
		}
	}
	return failed
}

// String returns the failure as text for messages.
func (f Failure) String() string {
	if f.Machine == "" {
		return f.Reason
	}
	return "Machine " + f.Machine + ": " + f.Reason
}
