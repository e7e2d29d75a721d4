package plan

import (
	"cmp"
	"slices"
	"time"
)

// Machine is what a decision needs to know of a control plane Machine.
type Machine struct {
	Name    string
	Created time.Time
	// FailureDomain is empty when the Machine is in none.
	FailureDomain string
	Deleting      bool
	// Outdated: the Machine differs from what the control plane asks for.
	Outdated bool
	// Unwanted: a person marked the Machine as the first to go.
	Unwanted bool
	// Problems say, each with a few words, what keeps the Machine from counting as healthy. Empty: it is healthy.
	Problems []string
	// Broken: one of its control plane components is known not to work.
	Broken bool
	// Held: it is being deleted, and stays as it is until its etcd member can leave.
	Held bool
}

// Input is what is there and what is wanted.
type Input struct {
	// Desired is the number of Machines asked for.
	Desired int
	// Initialised: the cluster has come up before. It is never brought up a second time: Machines can only join it.
	Initialised bool
	// MaxSurge is how many Machines more than that a rollout may have.
	MaxSurge int
	Machines []Machine
	// FailureDomains are those that may hold control plane Machines.
	FailureDomains []string
	// Strays are etcd members that no machine stands behind.
	Strays []string
	// Unreachable says why the workload cluster's state is not known. Empty: it is.
	Unreachable string
}

// Kind is what to do.
type Kind string

const (
	// Nothing is to be done: the Machines are as wanted.
	Nothing Kind = "Nothing"
	// Initialise is to make the first Machine of a new cluster.
	Initialise Kind = "Initialise"
	// ScaleUp is to make one more Machine.
	ScaleUp Kind = "ScaleUp"
	// ScaleDown is to delete one Machine.
	ScaleDown Kind = "ScaleDown"
)

// Action is the next thing to do.
type Action struct {
	Kind Kind
	// Rollout: the action replaces outdated Machines.
	Rollout bool
	// Machine is the name of the Machine to delete.
	Machine string
	// FailureDomain is where a new Machine goes; empty for nowhere in particular.
	FailureDomain string
	// Blocked lists the checks that have to pass first. While there are any, the action must not be taken.
	Blocked []Failure
}

// Next is the next action. It depends on nothing but its input.
func Next(in Input) Action {
	a := Action{Kind: Nothing}
	count := len(in.Machines)
	wanted := in.Desired
	if slices.ContainsFunc(in.Machines, func(m Machine) bool { return m.Outdated && !m.Deleting }) {
		a.Rollout = true
		wanted = in.Desired + in.MaxSurge
	}
	switch {
	case count == 0 && in.Desired > 0 && !in.Initialised:
		return Action{Kind: Initialise, FailureDomain: placement(in)}
	case in.lastIsHeld():
		// Whoever deleted it: its etcd member is the last one, so another one joins first.
		a.Kind, a.FailureDomain = ScaleUp, placement(in)
	case count < wanted:
		a.Kind, a.FailureDomain = ScaleUp, placement(in)
	case count > in.Desired || a.Rollout:
		a.Kind, a.Machine = ScaleDown, victim(in)
	default:
		return a
	}
	a.Blocked = preflight(in, a)
	return a
}

// lastIsHeld: the only Machine is being deleted and held, although Machines are wanted.
func (in Input) lastIsHeld() bool {
	return len(in.Machines) == 1 && in.Machines[0].Held && in.Desired > 0 && in.Initialised
}

// oldestFirst orders Machines by age, and those of one second by name.
func oldestFirst(a, b Machine) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}
