package machineset

import (
	"cmp"
	"math"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// Deletion priorities of Machines, highest first, as the API documents them.
const (
	mustDelete   = 100.0
	betterDelete = 75.0
	updateDelete = 60.0
	mayDelete    = 50.0
	couldDelete  = 20.0
	// ageScale is an age in seconds, ten days. Priorities approach their limit exponentially with this time constant.
	ageScale = 864000.0
)

// toDelete returns the n Machines to delete in the order of the set; the failure domain, if it spreads them, and then the name decide
// between equal ones. Machines that are already being deleted count among the n.
func toDelete(set *clusterv1.MachineSet, machines []*clusterv1.Machine, n int, now time.Time) []*clusterv1.Machine {
	order := set.Spec.Deletion.Order
	compare := func(a, b *clusterv1.Machine) int {
		return cmp.Compare(priority(b, order, now), priority(a, order, now))
	}
	ordered := slices.Clone(machines)
	slices.SortFunc(ordered, func(a, b *clusterv1.Machine) int { return cmp.Or(compare(a, b), cmp.Compare(a.Name, b.Name)) })
	if spreads(set) {
		ordered = spreadOut(ordered, func(a, b *clusterv1.Machine) bool { return compare(a, b) == 0 })
	}
	return ordered[:max(0, min(n, len(ordered)))]
}

func priority(m *clusterv1.Machine, order clusterv1.MachineSetDeletionOrder, now time.Time) float64 {
	switch {
	case !m.DeletionTimestamp.IsZero():
		return mustDelete
	case ownership.Marked(m):
		return betterDelete
	case inplace.IsUpdating(m):
		return updateDelete
	case ownership.Unhealthy(m):
		return mayDelete
	case order == "" || order == clusterv1.RandomMachineSetDeletionOrder:
		return couldDelete
	}
	age := now.Sub(m.CreationTimestamp.Time).Seconds()
	if m.CreationTimestamp.IsZero() || age < 0 {
		age = 0
	}
	oldest := mayDelete * (1 - math.Exp(-age/ageScale))
	if order == clusterv1.NewestMachineSetDeletionOrder {
		return mayDelete - oldest
	}
	return oldest
}
