package scale

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/cluster-api/providers/internal/preflight"
)

// The names of the checks.
const (
	// VersionPropagated passes if the topology is not about to change the version: Machines would be replaced at once.
	VersionPropagated = "VersionPropagated"
	// WorkloadReachable passes if the workload cluster responds.
	WorkloadReachable = "WorkloadReachable"
	// NoMachineDeleting passes if no Machine is being deleted: its etcd member may not have been removed yet, and there is one
	// change of membership at a time.
	NoMachineDeleting = "NoMachineDeleting"
	// NoMachineUpdating passes if no Machine is being updated in place: its components may be restarted.
	NoMachineUpdating = "NoMachineUpdating"
	// MachinesHealthy passes if all Machines that stay have a Node, healthy components and a healthy etcd member. Unknown is not
	// healthy.
	MachinesHealthy = "MachinesHealthy"
	// NoOrphanedMembers passes if every etcd member has a Machine: members without one are removed before another member joins.
	NoOrphanedMembers = "NoOrphanedMembers"
	// EtcdUpgradable passes if the etcd of a new Machine can join members with the versions that run.
	EtcdUpgradable = "EtcdUpgradable"
)

// proposal is an action, with the input that it was decided on.
type proposal struct {
	Input
	action Action
}

// checks returns the checks that must pass before the number of Machines changes, in the order in which failures are reported.
func checks() []preflight.Check[proposal] {
	return []preflight.Check[proposal]{
		{Name: VersionPropagated, Run: versionPropagated},
		{Name: WorkloadReachable, Run: workloadReachable},
		{Name: NoMachineDeleting, Run: noMachineDeleting},
		{Name: NoMachineUpdating, Run: noMachineUpdating},
		{Name: MachinesHealthy, Run: machinesHealthy},
		{Name: NoOrphanedMembers, Run: noOrphanedMembers},
		{Name: EtcdUpgradable, Run: etcdUpgradable},
	}
}

func versionPropagated(p proposal) []preflight.Failure {
	if p.PendingVersion == "" {
		return nil
	}
	return preflight.Because(fmt.Sprintf("waiting for a version upgrade to %s to be propagated", p.PendingVersion))
}

func workloadReachable(p proposal) []preflight.Failure {
	if p.Unreachable == "" {
		return nil
	}
	return preflight.Because(p.Unreachable)
}

func noMachineDeleting(p proposal) []preflight.Failure {
	var failures []preflight.Failure
	for _, m := range p.Machines {
		if m.Deleting && !(m.Held && p.lastIsHeld()) {
			failures = append(failures, preflight.Failure{Machine: m.Name, Reason: "it is being deleted"})
		}
	}
	return failures
}

func noMachineUpdating(p proposal) []preflight.Failure {
	var failures []preflight.Failure
	for _, m := range p.Machines {
		if m.Updating {
			failures = append(failures, preflight.Failure{Machine: m.Name, Reason: "it is being updated in place"})
		}
	}
	return failures
}

func machinesHealthy(p proposal) []preflight.Failure {
	var failures []preflight.Failure
	for _, m := range p.Machines {
		if !m.Deleting && m.Name != p.action.Machine && len(m.Problems) > 0 && !p.tolerates(m) {
			failures = append(failures, preflight.Failure{Machine: m.Name, Reason: strings.Join(m.Problems, ", ")})
		}
	}
	return failures
}

// tolerates reports whether a Machine may be unhealthy because another one is being replaced: if several fail at the same time, the first
// must be replaced before the next is remediated. Etcd must keep its quorum, even if the member of the new Machine never starts, and one
// Machine must be healthy. A Machine that is joining, which no health check has given up, may still change both.
func (p proposal) tolerates(m Machine) bool {
	return p.action.Kind == ScaleUp && p.Replacing && p.NoQuorum == "" && (m.HasNode || m.Marked) &&
		slices.ContainsFunc(p.Machines, func(m Machine) bool { return !m.Deleting && len(m.Problems) == 0 })
}

func noOrphanedMembers(p proposal) []preflight.Failure {
	if p.action.Kind != ScaleUp {
		return nil
	}
	var failures []preflight.Failure
	for _, name := range p.OrphanedMembers {
		failures = append(failures, preflight.Failure{Reason: fmt.Sprintf("etcd member %q has no Machine", name)})
	}
	return failures
}

// etcdUpgradable also fails before a rollout without surge deletes a Machine whose replacement could not join.
func etcdUpgradable(p proposal) []preflight.Failure {
	replaces := p.action.Kind == ScaleDown && len(p.Machines) <= p.Desired
	if p.OldEtcd == "" || p.action.Kind != ScaleUp && !replaces {
		return nil
	}
	return preflight.Because(p.OldEtcd)
}
