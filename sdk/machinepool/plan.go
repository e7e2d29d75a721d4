package machinepool

import (
	"cmp"
	"slices"
	"time"
)

// surge is how many machines a pool may have in addition to its replicas while it replaces machines: with one, a replacement is
// available before the machine that it replaces goes.
const surge = 1

// maxCreated is how many machines one reconcile creates. The next one reads the pool again, so that a mistaken number can be corrected
// before all machines exist.
const maxCreated = 500

// instance is what a plan depends on of a machine.
type instance struct {
	name    string
	created time.Time
	// joined is whether its Node joined the cluster, and its container still exists.
	joined bool
	// available is whether its Node is ready, too. That may change at any time, for all machines at once.
	available bool
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

// next returns the next changes towards replicas machines that are up to date. With hold, no machine is replaced: those that are
// missing are created, and those that are too many deleted, outdated ones first.
//
// Outdated machines are replaced one at a time: one is only deleted if enough others are available, or if it is not available itself, but
// all replacements are. So a failure that affects all machines, such as one of the network, stops the rollout. Machines that never joined
// are not missed. Machines whose deletion has started still count for the surge, so that a pool that cannot delete them does not grow.
func next(replicas int, hold bool, all []instance) plan {
	var staying []instance
	available, current, pending := 0, 0, 0
	for _, i := range all {
		if i.deleting {
			continue
		}
		staying = append(staying, i)
		if i.available {
			available++
		}
		if i.outdated == "" {
			current++
			if !i.available {
				pending++
			}
		}
	}
	if hold {
		current = len(staying)
	}
	out := plan{create: max(0, min(replicas-current, replicas+surge-len(all), maxCreated))}
	slices.SortFunc(staying, before)
	excess := len(staying) - replicas
	for _, i := range staying {
		left := available
		if i.available {
			left--
		}
		switch {
		case i.outdated != "" && !i.joined && !hold:
			// It is not missed.
		case excess <= 0:
			return out
		case i.outdated != "" && left < replicas && (i.available || pending > 0):
			return out // Its replacement is not available yet.
		}
		available = left
		excess--
		out.delete = append(out.delete, i.name)
	}
	return out
}

// before is the order in which machines are deleted: outdated ones, those that the user marked, and then the rest; among these,
// machines that did not join, then those that are not available, and then the youngest.
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
	return cmp.Or(first(a.outdated != "", b.outdated != ""), first(a.marked, b.marked), first(!a.joined, !b.joined),
		first(!a.available, !b.available), b.created.Compare(a.created), cmp.Compare(a.name, b.name))
}
