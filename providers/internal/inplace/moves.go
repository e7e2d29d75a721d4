package inplace

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// IsMoved reports whether a Machine was moved to another MachineSet that has not acknowledged it yet.
func IsMoved(m *clusterv1.Machine) bool {
	_, ok := m.Annotations[clusterv1.PendingAcknowledgeMoveAnnotation]
	return ok
}

// MarkMoved marks a Machine that is moved to another MachineSet, to be updated in place there.
func MarkMoved(m *clusterv1.Machine) {
	Mark(m)
	m.Annotations[clusterv1.PendingAcknowledgeMoveAnnotation] = ""
}

// Acknowledge removes the mark of a Machine that the replicas of its MachineSet include.
func Acknowledge(m *clusterv1.Machine) {
	delete(m.Annotations, clusterv1.PendingAcknowledgeMoveAnnotation)
}

// IsAcknowledged reports whether the replicas of a MachineSet include a Machine that was moved to it.
func IsAcknowledged(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	return slices.Contains(names(set, clusterv1.AcknowledgedMoveAnnotation), m.Name)
}

// MovesTo returns the name of the MachineSet that takes over the Machines of a set; empty if none does.
func MovesTo(set *clusterv1.MachineSet) string {
	return set.Annotations[clusterv1.MachineSetMoveMachinesToMachineSetAnnotation]
}

// Receives reports whether a MachineSet takes over Machines: from one set, or from any if from is empty.
func Receives(set *clusterv1.MachineSet, from string) bool {
	sources := names(set, clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation)
	return len(sources) > 0 && from == "" || from != "" && slices.Contains(sources, from)
}

// names returns the names in an annotation, separated by commas.
func names(obj client.Object, annotation string) []string {
	return strings.FieldsFunc(obj.GetAnnotations()[annotation], func(r rune) bool { return r == ',' || r == ' ' })
}
