// Package plan decides what a rotation does next. It is a pure function of what was found; how it is found, and done, does not belong here.
package plan

import (
	"fmt"
	"time"
)

// Action is what to do next.
type Action string

// Actions, in the order of a step.
const (
	// Begin records that the step has begun.
	Begin Action = "Begin"
	// Distribute writes the Secrets.
	Distribute Action = "Distribute"
	// Publish writes the certificates by which new machines recognize the cluster, in the cluster.
	Publish Action = "Publish"
	// Mark records that Machines created from the next second on have the step's certificates.
	Mark Action = "Mark"
	// RestartControlPlane has the Machines of the control plane replaced.
	RestartControlPlane Action = "RestartControlPlane"
	// Inspect reads whether the Machines have got the step's certificates.
	Inspect Action = "Inspect"
	// Settle does in the cluster what needs a complete control plane.
	Settle Action = "Settle"
	// MarkWorkers records that other Machines created from the next second on have the step's certificates.
	MarkWorkers Action = "MarkWorkers"
	// RestartWorkers has the other Machines replaced.
	RestartWorkers Action = "RestartWorkers"
	// Finish records that the step is complete.
	Finish Action = "Finish"
	// Await waits for what the message says.
	Await Action = "Await"
)

// Machines are the Machines of the control plane, or the others.
type Machines struct {
	// Replace is whether the step replaces them.
	Replace bool
	// Since is when the step's certificates were distributed; zero: not yet.
	Since time.Time
	// Requested is whether they have been told to be replaced since then.
	Requested bool
	// Total and Replaced count them.
	Total, Replaced int
	// Pending is what they wait for in addition; empty if nothing.
	Pending string
}

func (m Machines) done() bool { return m.Replaced == m.Total && m.Pending == "" }

func (m Machines) progress(what string) string {
	text := fmt.Sprintf("%s: %d of %d Machines are replaced", what, m.Replaced, m.Total)
	if m.Pending != "" {
		text += ": " + m.Pending
	}
	return text
}

// Facts are what was found.
type Facts struct {
	// Step is the name of the current step.
	Step   string
	Begun  bool
	Paused bool
	Now    time.Time
	// Distributed is whether all Secrets have what the step demands.
	Distributed bool
	// Published is whether the cluster has, and Kubeconfig whether the Secret with the kubeconfig has. Unknown ones are false.
	Published  bool
	Kubeconfig bool

	ControlPlane Machines
	// Rollouts is how often the control plane was told to replace its Machines, and Needed how often it must be.
	Rollouts, Needed int
	// Inspected is whether the Machines of the control plane are known to have the step's certificates; Outdated is whether some do not.
	Inspected, Outdated bool
	// Settled is whether all that needs a complete control plane is done.
	Settled bool
	Workers Machines
	// Pools is what MachinePools wait for; empty if nothing.
	Pools string
}

// Next returns what to do next, and, if that is to wait, for what.
func Next(f Facts) (Action, string) {
	action, waits := next(f)
	switch action {
	case Await, Inspect:
		return action, waits
	}
	if f.Paused {
		return Await, "spec.paused to be unset before the next change: " + string(action) + " in step " + f.Step
	}
	return action, waits
}

func next(f Facts) (Action, string) {
	switch {
	case !f.Begun:
		return Begin, ""
	case !f.Distributed:
		return Distribute, ""
	case f.ControlPlane.Since.IsZero():
		return announce(f)
	}
	if action, waits := controlPlane(f); action != "" {
		return action, waits
	}
	if action, waits := workers(f); action != "" {
		return action, waits
	}
	if f.Pools != "" {
		return Await, f.Pools
	}
	return Finish, ""
}

// announce makes known what new Machines need before there are any.
func announce(f Facts) (Action, string) {
	switch {
	case !f.Published:
		return Publish, ""
	case !f.Kubeconfig:
		return Await, "the Secret with the kubeconfig to have the step's certificates: the KubeadmControlPlane renews it, unless users manage it"
	}
	return Mark, ""
}

func controlPlane(f Facts) (Action, string) {
	m := f.ControlPlane
	switch {
	case f.Now.Before(m.Since):
		return Await, "the next second: Machines that are created from then on have the step's certificates"
	case !m.Requested:
		return RestartControlPlane, ""
	case !m.done():
		return Await, m.progress("control plane")
	case f.Outdated && f.Rollouts > f.Needed+1:
		return Await, "the bootstrap provider to write the certificates of the Secrets on new Machines: see its version and its logs"
	case f.Outdated:
		return Mark, ""
	case !f.Inspected:
		return Inspect, ""
	case f.Rollouts < f.Needed:
		return Mark, ""
	case !f.Settled:
		return Settle, ""
	}
	return "", ""
}

func workers(f Facts) (Action, string) {
	m := f.Workers
	switch {
	case !m.Replace:
		return "", ""
	case m.Since.IsZero():
		return MarkWorkers, ""
	case f.Now.Before(m.Since):
		return Await, "the next second: Machines that are created from then on have the step's certificates"
	case !m.Requested:
		return RestartWorkers, ""
	case !m.done():
		return Await, m.progress("workers")
	}
	return "", ""
}
