package machinepool

import (
	"cmp"
	"slices"
	"time"
)

// surge is how many machines a pool may have in addition to its replicas while it replaces machines. With one, at least as many
// machines as there are replicas are always ready.
const surge = 1

// instance is what a plan depends on of a machine.
type instance struct {
	name    string
	created time.Time
	// ready is whether its Node joined the cluster, and its container still exists.
	ready bool
	// outdated is why the machine must be replaced; empty if it is up to date.
	outdated string
	// marked is whether the user wants it to be deleted before others.
	marked bool
	// deleting is whether its deletion has started. It may still take long, to drain the Node.
	deleting bool
}

// plan is what to change now. More may follow once that is done.
type plan struct {
	// create is the number of machines to create.
	create int
	// delete are the names of machines to delete.
	delete []string
}

func (p plan) none() bool { return p.create == 0 && len(p.delete) == 0 }

// next returns the next changes towards replicas machines that are up to date.
//
// Outdated machines are replaced one at a time: one is only deleted if enough others are ready, unless it is not ready itself. Machines
// whose deletion has started still count for the surge, so that a pool whose machines cannot be deleted does not grow.
func next(replicas int, all []instance) plan {
	var staying []instance
	for _, i := range all {
		if !i.deleting {
			staying = append(staying, i)
		}
	}
	ready, current := 0, 0
	for _, i := range staying {
		if i.ready {
			ready++
		}
		if i.outdated == "" {
			current++
		}
	}
	out := plan{create: max(0, min(replicas-current, replicas+surge-len(all)))}
	slices.SortFunc(staying, before)
	excess := len(staying) - replicas
	for _, i := range staying {
		switch {
		case i.outdated != "" && !i.ready:
			// It is not missed.
		case excess <= 0:
			return out
		case i.outdated != "" && ready <= replicas:
			return out // Its replacement is not ready yet.
		}
		if i.ready {
			ready--
		}
		excess--
		out.delete = append(out.delete, i.name)
	}
	return out
}

// before is the order in which machines are deleted: outdated ones, those that the user marked, and then the rest; among these,
// machines that are not ready, and then the youngest.
func before(a, b instance) int {
	first := func(a, b bool) int {
		if a == b {
			return 0
		}
		if a {
			return -1
		}
		return 1
	}
	return cmp.Or(first(a.outdated != "", b.outdated != ""), first(a.marked, b.marked), first(!a.ready, !b.ready),
		b.created.Compare(a.created), cmp.Compare(a.name, b.name))
}
