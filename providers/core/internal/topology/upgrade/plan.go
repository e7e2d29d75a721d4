package upgrade

import (
	"slices"

	"sigs.k8s.io/cluster-api/sdk/contract"
)

// Input is the topology's version and the current state of each part.
type Input struct {
	// Version is the version in the topology.
	Version string
	// Chain are the versions on the way there. The zero value leads there directly.
	Chain Chain
	// Step is the version that the control plane was last to get in an upgrade by several steps, as the Cluster records it. Empty: there
	// is no such upgrade.
	Step string
	// Concurrency is how many MachineDeployments, and how many MachinePools, may be upgraded at the same time. Less than
	// one means one.
	Concurrency int

	ControlPlane ControlPlane
	// MachineDeployments and MachinePools are those of the topology, in its order.
	MachineDeployments []Workers
	MachinePools       []Workers

	// ControlPlaneHeld and WorkersHeld report whether hooks block the upgrade: of the control plane, and thereby of the workers to the
	// versions that follow, or of the workers.
	ControlPlaneHeld, WorkersHeld bool
}

// ControlPlane is the current state of the control plane.
type ControlPlane struct {
	// Exists reports whether the object exists. If not, the other fields are ignored.
	Exists bool
	// Version is the version in its spec.
	Version string
	// Provisioning reports whether it has not reported a version yet.
	Provisioning bool
	// Upgrading reports whether its status has a lower version than its spec.
	Upgrading bool
	// Scaling reports whether its replicas are not reconciled. It is false if the topology does not set replicas.
	Scaling bool
}

// Workers is the current state of a MachineDeployment or MachinePool of the topology.
type Workers struct {
	// TopologyName is its unique name in the topology.
	TopologyName string
	// Exists reports whether the object exists. If not, Object, Version and Upgrading are ignored.
	Exists bool
	// Object is the name of the object.
	Object string
	// Version is the version in its spec.
	Version string
	// Upgrading reports whether any of its machines have another version than its spec.
	Upgrading bool
	// Unreachable reports whether Upgrading is assumed, because the versions of its machines cannot be read.
	Unreachable bool
	// Deferred and Hold report whether the topology has the annotations that defer upgrades: of these workers, or of these
	// and all that follow.
	Deferred, Hold bool
	// Pinned is their own version in the topology. Empty: they get the version of the topology.
	Pinned string
}

// Plan is the version that each part gets now, and what has to wait.
type Plan struct {
	// Version is the version in the topology.
	Version string
	// ControlPlane is the version that the control plane gets now.
	ControlPlane string
	// ControlPlanePending reports whether the control plane has to wait for the version in the topology.
	ControlPlanePending bool
	// ControlPlaneOnHold reports whether the control plane must not change until it gets its next version. At an intermediate version,
	// it may.
	ControlPlaneOnHold bool
	// Remaining are the versions that are still to be reached when the plan is made, including those that parts get now.
	Remaining Chain
	// Step is what the Cluster has to record as Input.Step.
	Step string
	// Ends are the current versions, and that of the topology.
	Ends Ends

	MachineDeployments Sequence
	MachinePools       Sequence

	controlPlane ControlPlane
	// stopped reports whether the control plane has an intermediate version at which workers stop.
	stopped bool
}

// Sequence is the plan for all MachineDeployments, or for all MachinePools.
type Sequence struct {
	// Versions maps topology names to the version that the workers get now. It does not have workers that are created
	// later.
	Versions map[string]string
	// Creating are the topology names of workers whose creation has to wait.
	Creating []string
	// NameTaken are the topology names of workers whose creation has to wait until an object with their name has been deleted.
	// Compute does not set it.
	NameTaken []string
	// Pending are the names of objects whose upgrade has to wait.
	Pending []string
	// Deferred are the names of objects whose upgrade is deferred by annotations.
	Deferred []string
	// Upgrading are the names of objects that are being upgraded: some machines have another version than the spec, or
	// the spec gets a new version now.
	Upgrading []string
	// PinnedPending are the names of objects of pinned workers whose own version has to wait, each with that version, and PinnedUpgrading
	// those of pinned workers that are being upgraded. The upgrade of the Cluster does not wait for them.
	PinnedPending, PinnedUpgrading []string
	// Unreachable are those of Upgrading and PinnedUpgrading whose machines have unknown versions.
	Unreachable []string

	// upgradingTo is the lowest version that those of Upgrading get, and steps are the versions that workers stop at.
	upgradingTo string
	steps       []string
	// starts reports whether any of the workers gets another version now, and due whether any has yet to reach the version of the control
	// plane at which they stop.
	starts, due bool
	// pinned has the topology names of pinned workers.
	pinned map[string]bool
}

// Compute decides which version each part gets now.
func Compute(in Input) Plan {
	in.Chain = in.chain()
	p := Plan{Version: in.Version, Remaining: in.Chain, Ends: in.Ends(), controlPlane: in.ControlPlane}
	p.MachineDeployments.findUpgrading(in.MachineDeployments)
	p.MachinePools.findUpgrading(in.MachinePools)
	p.ControlPlane = p.controlPlaneVersion(in)
	p.ControlPlanePending = p.ControlPlane != in.Version
	p.ControlPlaneOnHold = p.ControlPlanePending && !p.Starts() && (in.Step == "" || in.Step != p.ControlPlane)
	ready := !p.Starts() && !in.ControlPlane.inProgress() && !in.WorkersHeld
	p.MachineDeployments.plan(in.MachineDeployments, in, ready)
	p.MachinePools.plan(in.MachinePools, in, ready)
	p.Step = p.step(in)
	p.stopped = p.ControlPlanePending && in.workersDue() != ""
	return p
}

// chain returns the versions on the way, also if the input has none.
func (in Input) chain() Chain {
	if len(in.Chain.ControlPlane)+len(in.Chain.Workers) > 0 || !in.ControlPlane.Exists {
		return in.Chain
	}
	return in.Ends().Direct()
}

// Ends returns the versions between which the upgrade leads.
func (in Input) Ends() Ends {
	e := Ends{ControlPlane: in.ControlPlane.Version, To: in.Version}
	for _, w := range slices.Concat(in.MachineDeployments, in.MachinePools) {
		if w.Exists && w.Pinned == "" && (e.Workers == "" || isLower(w.Version, e.Workers)) {
			e.Workers = w.Version
		}
	}
	return e
}

// isLower reports whether a version is lower than another one. It is not if one of them is invalid.
func isLower(a, b string) bool {
	order, err := contract.CompareVersions(a, b)
	return err == nil && order < 0
}

// workersDue returns the version that workers stop at while the control plane has it; empty if they do not.
func (in Input) workersDue() string {
	switch steps := in.Chain.Workers; {
	case !in.ControlPlane.Exists || in.ControlPlane.Version == in.Version:
		return in.Version
	case len(steps) > 0 && steps[0] == in.ControlPlane.Version:
		return steps[0]
	}
	return ""
}

// Starts reports whether an existing control plane gets another version now.
func (p Plan) Starts() bool {
	return p.controlPlane.Exists && p.ControlPlane != p.controlPlane.Version
}

// Pending returns the versions that the control plane is to get after the one that it gets now.
func (p Plan) Pending() []string { return after(p.Remaining.ControlPlane, p.ControlPlane) }

// PendingWorkers returns the versions that workers are to get after those that all of them have or get now, pinned ones not counted.
func (p Plan) PendingWorkers() []string {
	lowest := ""
	for _, s := range []Sequence{p.MachineDeployments, p.MachinePools} {
		for name, version := range s.Versions {
			if !s.pinned[name] && (lowest == "" || isLower(version, lowest)) {
				lowest = version
			}
		}
	}
	return after(p.Remaining.Workers, lowest)
}

// WorkersStart reports whether workers get another version now.
func (p Plan) WorkersStart() bool { return p.MachineDeployments.starts || p.MachinePools.starts }

// WorkersReached reports whether no workers are being upgraded, and none still has to reach the version of the control plane at which they
// stop.
func (p Plan) WorkersReached() bool {
	return p.MachineDeployments.reached() && p.MachinePools.reached()
}

func (s *Sequence) reached() bool { return !s.due && len(s.Upgrading) == 0 }

// step returns the version to record. The record begins with the first of several steps, and ends with the upgrade.
func (p Plan) step(in Input) string {
	switch {
	case p.Complete():
		return ""
	case p.Starts() && (in.Step != "" || len(in.Chain.ControlPlane) > 1):
		return p.ControlPlane
	}
	return in.Step
}

// Complete reports whether every part that is not pinned has the version of the topology, and none of them is in progress or has to wait.
func (p Plan) Complete() bool {
	current := p.controlPlane
	return current.Exists && current.Version == p.Version && !current.inProgress() && p.MachineDeployments.complete() &&
		p.MachinePools.complete()
}

func (s *Sequence) complete() bool {
	return len(s.Creating)+len(s.NameTaken)+len(s.Pending)+len(s.Deferred)+len(s.Upgrading) == 0
}

// inProgress reports whether the control plane is being provisioned, upgraded or scaled.
func (c ControlPlane) inProgress() bool {
	return c.Exists && (c.Provisioning || c.Upgrading || c.Scaling)
}

// controlPlaneVersion keeps the current version until all parts have finished their previous step, and while workers stop at it.
func (p *Plan) controlPlaneVersion(in Input) string {
	current := in.ControlPlane
	switch {
	case !current.Exists:
		return in.Version
	case current.inProgress(), len(p.MachineDeployments.Upgrading) > 0, len(p.MachinePools.Upgrading) > 0, in.ControlPlaneHeld,
		current.Version != in.Version && in.workersDue() != "":
		return current.Version
	case len(in.Chain.ControlPlane) > 0:
		return in.Chain.ControlPlane[0]
	default:
		return in.Version
	}
}

// plan decides for each of the workers, in order. ready reports whether they may be created or upgraded at all.
func (s *Sequence) plan(all []Workers, in Input, ready bool) {
	s.Versions, s.steps = make(map[string]string, len(all)), in.Chain.Workers
	due := in.workersDue()
	inProgress := len(s.Upgrading)
	defer func() { slices.Sort(s.Upgrading) }()
	onHold := false
	var pinned []Workers
	for _, w := range all {
		onHold = onHold || w.Hold
		switch {
		case w.Pinned != "":
			pinned = append(pinned, w)
			continue
		case !w.Exists && ready && due == in.Version:
			s.Versions[w.TopologyName] = in.Version
			continue
		case !w.Exists:
			s.Creating = append(s.Creating, w.TopologyName)
			continue
		}
		s.Versions[w.TopologyName] = w.Version
		if w.Upgrading {
			s.upgradesTo(w.Version)
		}
		isDue := w.mustReach(due, in.Version)
		s.due = s.due || isDue
		switch {
		case w.Version == in.Version:
		case w.Deferred || onHold:
			s.Deferred = append(s.Deferred, w.Object)
		case inProgress >= max(in.Concurrency, 1) || !ready || !isDue:
			s.Pending = append(s.Pending, w.Object)
		default:
			s.starts = true
			s.Versions[w.TopologyName] = due
			s.upgradesTo(due)
			if !w.Upgrading {
				inProgress++
				s.Upgrading = append(s.Upgrading, w.Object)
			}
		}
	}
	s.planPinned(pinned, in, ready)
}

// planPinned decides for each of the pinned workers, after the others: these do not wait for them. Annotations that defer upgrades do not
// matter.
func (s *Sequence) planPinned(pinned []Workers, in Input, ready bool) {
	s.pinned = make(map[string]bool, len(pinned))
	for _, w := range pinned {
		s.pinned[w.TopologyName] = true
		possible := ready && !isLower(in.ControlPlane.Version, w.Pinned) || !in.ControlPlane.Exists
		switch {
		case !w.Exists && !possible:
			s.Creating = append(s.Creating, w.TopologyName)
			continue
		case !w.Exists || w.Version == w.Pinned:
			s.Versions[w.TopologyName] = w.Pinned
			continue
		case !possible || len(s.Upgrading)+len(s.PinnedUpgrading) >= max(in.Concurrency, 1):
			s.Versions[w.TopologyName] = w.Version
			s.PinnedPending = append(s.PinnedPending, w.Object+" ("+w.Pinned+")")
			continue
		}
		s.Versions[w.TopologyName] = w.Pinned
		if !w.Upgrading {
			s.PinnedUpgrading = append(s.PinnedUpgrading, w.Object)
		}
	}
	slices.Sort(s.PinnedUpgrading)
}

// mustReach reports whether workers must get a version, which is empty if they do not stop now. At an intermediate version, workers that
// are beyond it stay there.
func (w Workers) mustReach(due, last string) bool {
	if due == last {
		return w.Version != due
	}
	return due != "" && isLower(w.Version, due)
}

func (s *Sequence) upgradesTo(version string) {
	if s.upgradingTo == "" || isLower(version, s.upgradingTo) {
		s.upgradingTo = version
	}
}

// findUpgrading sets which objects are being upgraded already.
func (s *Sequence) findUpgrading(all []Workers) {
	s.Upgrading = upgrading(all, func(w Workers) bool { return w.Pinned == "" })
	s.PinnedUpgrading = upgrading(all, func(w Workers) bool { return w.Pinned != "" })
	s.Unreachable = upgrading(all, func(w Workers) bool { return w.Unreachable })
}

// upgrading returns the sorted names of the objects that are being upgraded already, of those workers that a function selects.
func upgrading(all []Workers, selects func(Workers) bool) []string {
	var names []string
	for _, w := range all {
		if w.Exists && w.Upgrading && selects(w) {
			names = append(names, w.Object)
		}
	}
	slices.Sort(names)
	return names
}
