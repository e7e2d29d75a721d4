package upgrade

import "slices"

// Input is what is wanted and what is there.
type Input struct {
	// Version is the version that the topology asks for.
	Version string
	// Concurrency is how many MachineDeployments, and how many MachinePools, may be on their way to a new version
	// at the same time. Less than one counts as one.
	Concurrency int

	ControlPlane ControlPlane
	// MachineDeployments and MachinePools are those of the topology, in its order.
	MachineDeployments []Workers
	MachinePools       []Workers
}

// ControlPlane is the control plane as it is.
type ControlPlane struct {
	// Exists says whether there is a control plane object; the other fields count only then.
	Exists bool
	// Version is the version in its spec.
	Version string
	// Provisioning says that it has not reported a version yet.
	Provisioning bool
	// Upgrading says that it reports a lower version than its spec asks for.
	Upgrading bool
	// Scaling says that it is on its way to a number of replicas. False where the topology leaves the number open.
	Scaling bool
}

// Workers are one MachineDeployment or MachinePool of the topology.
type Workers struct {
	// TopologyName tells them from others of the topology.
	TopologyName string
	// Exists says whether there is an object; Object and Version count only then.
	Exists bool
	// Object is the name of the object.
	Object string
	// Version is the version in its spec.
	Version string
	// Upgrading says that some of its machines have another version than its spec.
	Upgrading bool
	// Deferred and Hold are the annotations of the topology by which users put upgrades off: of these workers, or of
	// these and all that follow.
	Deferred, Hold bool
}

// Plan is which version every part is to have now, and what has to wait.
type Plan struct {
	// Version is the version that the topology asks for.
	Version string
	// ControlPlane is the version that the control plane is to have now.
	ControlPlane string
	// ControlPlanePending says that this is not yet the one that the topology asks for.
	ControlPlanePending bool

	MachineDeployments Sequence
	MachinePools       Sequence

	controlPlane ControlPlane
}

// Sequence is the plan for MachineDeployments, or for MachinePools.
type Sequence struct {
	// Versions has the version to have now by name in the topology. Workers that are to be created later are absent.
	Versions map[string]string
	// Creating names workers, as in the topology, whose creation has to wait.
	Creating []string
	// Pending names objects whose upgrade has to wait.
	Pending []string
	// Deferred names objects whose upgrade users have put off.
	Deferred []string
	// Upgrading names objects whose machines do not all have the version of their spec yet, those included that get a
	// new version now.
	Upgrading []string
}

// Compute decides which version every part is to have now.
func Compute(in Input) Plan {
	p := Plan{Version: in.Version, controlPlane: in.ControlPlane}
	p.MachineDeployments.Upgrading = upgrading(in.MachineDeployments)
	p.MachinePools.Upgrading = upgrading(in.MachinePools)
	p.ControlPlane = p.controlPlaneVersion(in)
	p.ControlPlanePending = p.ControlPlane != in.Version
	starting := in.ControlPlane.Exists && p.ControlPlane != in.ControlPlane.Version
	stable := !p.ControlPlanePending && !starting && !in.ControlPlane.moving()
	p.MachineDeployments.plan(in.MachineDeployments, in, stable)
	p.MachinePools.plan(in.MachinePools, in, stable)
	return p
}

// moving says whether the control plane is on its way to something.
func (c ControlPlane) moving() bool {
	return c.Exists && (c.Provisioning || c.Upgrading || c.Scaling)
}

func (p *Plan) controlPlaneVersion(in Input) string {
	current := in.ControlPlane
	switch {
	case !current.Exists:
		return in.Version
	case current.moving(), len(p.MachineDeployments.Upgrading) > 0, len(p.MachinePools.Upgrading) > 0:
		return current.Version
	default:
		return in.Version
	}
}

// plan walks the workers in order. The first rule that fits decides for each of them.
func (s *Sequence) plan(all []Workers, in Input, stable bool) {
	s.Versions = make(map[string]string, len(all))
	busy := len(s.Upgrading)
	defer func() { slices.Sort(s.Upgrading) }()
	held := false
	for _, w := range all {
		held = held || w.Hold
		switch {
		case !w.Exists && stable:
			s.Versions[w.TopologyName] = in.Version
			continue
		case !w.Exists:
			s.Creating = append(s.Creating, w.TopologyName)
			continue
		}
		s.Versions[w.TopologyName] = w.Version
		switch {
		case w.Version == in.Version:
		case w.Deferred || held:
			s.Deferred = append(s.Deferred, w.Object)
		case busy >= max(in.Concurrency, 1) || !stable:
			s.Pending = append(s.Pending, w.Object)
		default:
			s.Versions[w.TopologyName] = in.Version
			if !w.Upgrading {
				busy++
				s.Upgrading = append(s.Upgrading, w.Object)
			}
		}
	}
}

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
