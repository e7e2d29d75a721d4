// Package plan decides what a rotation does next. It is a pure function of what was found; how it is found, and done, does not belong here.
package plan

import (
	"fmt"
	"time"

	"sigs.k8s.io/cluster-api/sdk/report"
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
	// Pause waits for the user. The message says what comes next.
	Pause Action = "Pause"
)

// next says to users what an action does, of a rotation that is paused before it.
func (a Action) next() string {
	switch a {
	case Distribute:
		return "the certificates are written into the Secrets of the cluster"
	case Publish:
		return "the certificates are published in the workload cluster"
	case Mark, RestartControlPlane:
		return "the Machines of the control plane are replaced"
	case Settle:
		return "tokens and certificates in the workload cluster are updated"
	case MarkWorkers, RestartWorkers:
		return "the other Machines are replaced"
	case Finish:
		return "the step is complete"
	}
	return "the step begins"
}

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
	verb := map[bool]string{true: "is", false: "are"}[m.Total == 1]
	text := fmt.Sprintf("%d of %s %s replaced", m.Replaced, report.Count(m.Total, what), verb)
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
	if f.Paused && action != Await && action != Inspect {
		return Pause, action.next()
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
		return Await, m.progress("control plane Machine")
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
		return Await, m.progress("other Machine")
	}
	return "", ""
}
