package machineset

import (
	"cmp"
	"math"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// Deletion priorities of Machines, highest first, as the API documents them.
const (
	mustDelete   = 100.0
	betterDelete = 75.0
	mayDelete    = 50.0
	couldDelete  = 20.0
	// ageScale is an age in seconds, ten days. Priorities approach their limit exponentially with this time constant.
	ageScale = 864000.0
)

// toDelete returns the n Machines to delete by policy; the name decides between equal ones. Machines that are already being
// deleted count among the n.
func toDelete(machines []*clusterv1.Machine, policy string, n int, now time.Time) []*clusterv1.Machine {
	ordered := slices.Clone(machines)
	slices.SortFunc(ordered, func(a, b *clusterv1.Machine) int {
		return cmp.Or(cmp.Compare(priority(b, policy, now), priority(a, policy, now)), cmp.Compare(a.Name, b.Name))
	})
	return ordered[:max(0, min(n, len(ordered)))]
}

func priority(m *clusterv1.Machine, policy string, now time.Time) float64 {
	switch {
	case !m.DeletionTimestamp.IsZero():
		return mustDelete
	case ownership.Marked(m):
		return betterDelete
	case ownership.Unhealthy(m):
		return mayDelete
	case policy == "" || policy == string(clusterv1.RandomMachineSetDeletePolicy):
		return couldDelete
	}
	age := now.Sub(m.CreationTimestamp.Time).Seconds()
	if m.CreationTimestamp.IsZero() || age < 0 {
		age = 0
	}
	oldest := mayDelete * (1 - math.Exp(-age/ageScale))
	if policy == string(clusterv1.NewestMachineSetDeletePolicy) {
		return mayDelete - oldest
	}
	return oldest
}
