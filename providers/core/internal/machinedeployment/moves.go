package machinedeployment

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
)

// arrived returns the Machines that were moved to a MachineSet and still have the mark of the move, sorted by name.
func (s *scope) arrived(set *clusterv1.MachineSet) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, m := range s.machines {
		if m.DeletionTimestamp.IsZero() && inplace.IsMoved(m) && metav1.IsControlledBy(m, set) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// moved returns how many Machines have the mark of a move.
func (s *scope) moved() int {
	n := 0
	for _, set := range s.sets {
		n += len(s.arrived(set))
	}
	return n
}

// setMoves sets the annotations by which MachineSets hand over Machines that can be updated in place. The plan has counted all Machines
// that have arrived, whatever happens to the rollout: acknowledged are these, so that none is counted twice.
func (s *scope) setMoves(annotations map[string]string, live *clusterv1.MachineSet, current bool, target rollout.Target) {
	for _, key := range []string{
		clusterv1.MachineSetMoveMachinesToMachineSetAnnotation, clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation,
		clusterv1.AcknowledgedMoveAnnotation,
	} {
		delete(annotations, key)
	}
	set := func(key string, names []string) {
		if len(names) > 0 {
			annotations[key] = strings.Join(names, ",")
		}
	}
	if live != nil {
		var names []string
		for _, m := range s.arrived(live) {
			names = append(names, m.Name)
		}
		set(clusterv1.AcknowledgedMoveAnnotation, names)
	}
	if target.Moving && !current {
		annotations[clusterv1.MachineSetMoveMachinesToMachineSetAnnotation] = s.currentName()
	}
	if current {
		var sources []string
		for _, old := range s.old() {
			if s.targets[old.Name].Moving {
				sources = append(sources, old.Name)
			}
		}
		slices.Sort(sources)
		set(clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation, sources)
	}
}

// currentName returns the name of the current MachineSet, which may have to be created.
func (s *scope) currentName() string {
	if s.current != nil {
		return s.current.Name
	}
	return s.newIdentity.name
}
