package scale

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/providers/internal/preflight"
)

// Machine is what decisions depend on of a control plane Machine.
type Machine struct {
	Name    string
	Created time.Time
	// FailureDomain is empty if the Machine has none.
	FailureDomain string
	Deleting      bool
	// Outdated is true if the Machine differs from the spec.
	Outdated bool
	// Unwanted is true if a user has marked the Machine to be deleted first.
	Unwanted bool
	HasNode  bool
	// Problems are the reasons, with a few words each, why the Machine is not healthy. Empty if it is.
	Problems []string
	// Broken is true if it is broken (ownership.Broken), or one of its control plane components is known to be unhealthy. A Machine that is
	// joining is neither: its etcd member may have been added already, and without it etcd may have no quorum.
	Broken bool
	// Marked is true if a health check found it unhealthy.
	Marked bool
	// Held is true if it is being deleted and waits until its etcd member can be removed.
	Held bool
	// Updating is true while it is being updated in place.
	Updating bool
	// Updatable is true if it may be updated in place instead of being replaced: it is outdated because of its spec alone, not because of
	// its age.
	Updatable bool
}

// Input is the current state and the spec.
type Input struct {
	// Desired is the desired number of Machines.
	Desired int
	// Initialized is true if the cluster has been initialized. That happens once; Machines can only join it then.
	Initialized bool
	// MaxSurge is how many Machines there may be above Desired during a rollout.
	MaxSurge int
	Machines []Machine
	// FailureDomains are the failure domains for control plane Machines.
	FailureDomains []string
	// OrphanedMembers are etcd members without a Machine.
	OrphanedMembers []string
	// Replacing is true if the next Machine replaces one that was remediated.
	Replacing bool
	// NoQuorum is why etcd could lose its quorum if another member joined. Empty if it could not.
	NoQuorum string
	// OldEtcd is why no Machine may join before the etcd of others is upgraded. Empty if one may.
	OldEtcd string
	// Unreachable is why the state of the workload cluster is unknown. Empty if it is known.
	Unreachable string
	// PendingVersion is the version that the topology is about to give the control plane. Empty if there is none.
	PendingVersion string
}

// Kind is a kind of action.
type Kind string

const (
	// Nothing needs to be done.
	Nothing Kind = "Nothing"
	// Initialize creates the first Machine of a new cluster.
	Initialize Kind = "Initialize"
	// ScaleUp creates a Machine.
	ScaleUp Kind = "ScaleUp"
	// ScaleDown deletes a Machine.
	ScaleDown Kind = "ScaleDown"
)

// Action is the next change of the number of Machines. The zero value is none.
type Action struct {
	Kind Kind
	// Rollout is true if there are Machines to replace.
	Rollout bool
	// Machine is the name of the Machine to delete.
	Machine string
	// Updatable is true if Machine may be updated in place instead: it is healthy, and fewer Machines than desired are up to date.
	Updatable bool
	// FailureDomain is the failure domain of a new Machine, empty for none.
	FailureDomain string
	// Blocked are the checks that fail. The action must not be taken before all of them pass.
	Blocked []preflight.Failure
	// Begins is true if no change was in progress before this reconcile. Only Plan sets it.
	Begins bool
}

// Blockers returns why the action must not be taken yet, empty if it may.
func (a Action) Blockers() string {
	reasons := make([]string, 0, len(a.Blocked))
	for _, f := range a.Blocked {
		reasons = append(reasons, f.String())
	}
	return strings.Join(reasons, "; ")
}

// OldEtcd returns why the action must not be taken before a user has changed the version of etcd. All other blockers pass by themselves, or
// are conditions of Machines already.
func (a Action) OldEtcd() string {
	for _, f := range a.Blocked {
		if f.Check == EtcdUpgradable {
			return f.Reason
		}
	}
	return ""
}

// Next returns the next action. It is a pure function.
func Next(in Input) Action {
	a := Action{Kind: Nothing}
	count := len(in.Machines)
	wanted := in.Desired
	if slices.ContainsFunc(in.Machines, func(m Machine) bool { return m.Outdated && !m.Deleting }) {
		a.Rollout = true
		wanted = in.Desired + in.MaxSurge
	}
	switch {
	case count == 0 && in.Desired > 0 && !in.Initialized:
		return Action{Kind: Initialize, FailureDomain: placement(in)}
	case in.lastIsHeld():
		// Its etcd member is the last one, so another one must join first.
		a.Kind, a.FailureDomain = ScaleUp, placement(in)
	case count < wanted:
		a.Kind, a.FailureDomain = ScaleUp, placement(in)
	case count > in.Desired || a.Rollout:
		a.Kind, a.Machine = ScaleDown, machineToDelete(in)
		a.Updatable = a.Rollout && in.updatable(a.Machine)
	default:
		return a
	}
	a.Blocked = preflight.All(checks(), proposal{Input: in, action: a})
	return a
}

// lastIsHeld reports whether the only Machine is being deleted and held, although there should be Machines.
func (in Input) lastIsHeld() bool {
	return len(in.Machines) == 1 && in.Machines[0].Held && in.Desired > 0 && in.Initialized
}

// updatable reports whether a Machine may be updated in place: not if another one is up to date in its place already.
func (in Input) updatable(name string) bool {
	upToDate := 0
	for _, m := range in.Machines {
		if !m.Outdated && !m.Deleting {
			upToDate++
		}
	}
	return upToDate < in.Desired && slices.ContainsFunc(in.Machines, func(m Machine) bool {
		return m.Name == name && m.Updatable && !m.Unwanted && !m.Broken && !m.Marked && len(m.Problems) == 0
	})
}

// oldestFirst orders Machines by age, and then by name.
func oldestFirst(a, b Machine) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}
