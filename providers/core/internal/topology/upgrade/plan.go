package upgrade

import "slices"

// Input is the topology's version and the current state of each part.
type Input struct {
	// Version is the version in the topology.
	Version string
	// Concurrency is how many MachineDeployments, and how many MachinePools, may be upgraded at the same time. Less than
	// one means one.
	Concurrency int

	ControlPlane ControlPlane
	// MachineDeployments and MachinePools are those of the topology, in its order.
	MachineDeployments []Workers
	MachinePools       []Workers

	// ControlPlaneHeld and WorkersHeld report whether runtime extensions block the upgrade: of the control plane, and thereby of the
	// workers, or of the workers.
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
}

// Plan is the version that each part gets now, and what has to wait.
type Plan struct {
	// Version is the version in the topology.
	Version string
	// ControlPlane is the version that the control plane gets now.
	ControlPlane string
	// ControlPlanePending reports whether the control plane has to wait for the version in the topology.
	ControlPlanePending bool

	MachineDeployments Sequence
	MachinePools       Sequence

	controlPlane ControlPlane
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
	// Unreachable are those of Upgrading whose machines have unknown versions.
	Unreachable []string
}

// Compute decides which version each part gets now.
func Compute(in Input) Plan {
	p := Plan{Version: in.Version, controlPlane: in.ControlPlane}
	p.MachineDeployments.Upgrading = upgrading(in.MachineDeployments)
	p.MachinePools.Upgrading = upgrading(in.MachinePools)
	p.MachinePools.Unreachable = upgrading(slices.DeleteFunc(slices.Clone(in.MachinePools), func(w Workers) bool { return !w.Unreachable }))
	p.ControlPlane = p.controlPlaneVersion(in)
	p.ControlPlanePending = p.ControlPlane != in.Version
	starting := in.ControlPlane.Exists && p.ControlPlane != in.ControlPlane.Version
	ready := !p.ControlPlanePending && !starting && !in.ControlPlane.inProgress() && !in.WorkersHeld
	p.MachineDeployments.plan(in.MachineDeployments, in, ready)
	p.MachinePools.plan(in.MachinePools, in, ready)
	return p
}

// Complete reports whether every part has the version of the topology, and nothing is in progress or has to wait.
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

// controlPlaneVersion keeps the current version until all parts have finished their previous upgrade.
func (p *Plan) controlPlaneVersion(in Input) string {
	current := in.ControlPlane
	switch {
	case !current.Exists:
		return in.Version
	case current.inProgress(), len(p.MachineDeployments.Upgrading) > 0, len(p.MachinePools.Upgrading) > 0, in.ControlPlaneHeld:
		return current.Version
	default:
		return in.Version
	}
}

// plan decides for each of the workers, in order. ready reports whether they may be created or upgraded at all.
func (s *Sequence) plan(all []Workers, in Input, ready bool) {
	s.Versions = make(map[string]string, len(all))
	inProgress := len(s.Upgrading)
	defer func() { slices.Sort(s.Upgrading) }()
	onHold := false
	for _, w := range all {
		onHold = onHold || w.Hold
		switch {
		case !w.Exists && ready:
			s.Versions[w.TopologyName] = in.Version
			continue
		case !w.Exists:
			s.Creating = append(s.Creating, w.TopologyName)
			continue
		}
		s.Versions[w.TopologyName] = w.Version
		switch {
		case w.Version == in.Version:
		case w.Deferred || onHold:
			s.Deferred = append(s.Deferred, w.Object)
		case inProgress >= max(in.Concurrency, 1) || !ready:
			s.Pending = append(s.Pending, w.Object)
		default:
			s.Versions[w.TopologyName] = in.Version
			if !w.Upgrading {
				inProgress++
				s.Upgrading = append(s.Upgrading, w.Object)
			}
		}
	}
}

// upgrading returns the sorted names of the objects that are being upgraded already.
func upgrading(all []Workers) []string {
	var names []string
	for _, w := range all {
		if w.Exists && w.Upgrading {
			names = append(names, w.Object)
		}
	}
	slices.Sort(names)
	return names
}
