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
	// unhealthy is whether its Machine is known to be unhealthy, see ownership.Unhealthy.
	unhealthy bool
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
// are not missed. A machine that the user marked goes first, but while there are outdated ones, it waits in the same way: the surplus may
// be the surge. Nothing that is up to date goes in its place then. Machines whose deletion has started still count for the surge, so that
// a pool that cannot delete them does not grow.
func next(replicas int, hold bool, all []instance) plan {
	var staying []instance
	available, current, pending, rollout := 0, 0, 0, false
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
		} else {
			rollout = true
		}
	}
	if hold {
		current = len(staying)
	}
	out := plan{create: max(0, min(replicas-current, replicas+surge-len(all), maxCreated))}
	slices.SortFunc(staying, func(a, b instance) int { return before(a, b, rollout) })
	excess, waiting := len(staying)-replicas, false
	for _, i := range staying {
		left := available
		if i.available {
			left--
		}
		needed := left < replicas && (i.available || pending > 0)
		switch {
		case i.outdated != "" && !i.joined && !hold:
			// It is not missed.
		case excess <= 0:
			continue
		case i.marked && rollout && needed:
			waiting = true
			continue
		case i.outdated == "" && waiting:
			return out
		case i.outdated != "" && needed:
			return out // Its replacement is not available yet.
		}
		available = left
		excess--
		out.delete = append(out.delete, i.name)
	}
	return out
}

// before is the order in which machines are deleted: those that the user marked, outdated ones, and then the rest; among these, machines
// that did not join, then those that are unhealthy, and then the youngest. One that is not available is not unhealthy, because its health
// may only be unknown; but during a rollout, it goes before others, since it is not missed.
func before(a, b instance, rollout bool) int {
	first := func(is func(instance) bool) int {
		switch {
		case is(a) == is(b):
			return 0
		case is(a):
			return -1
		}
		return 1
	}
	return cmp.Or(
		first(func(i instance) bool { return i.marked }),
		first(func(i instance) bool { return i.outdated != "" }),
		first(func(i instance) bool { return !i.joined }),
		first(func(i instance) bool { return i.unhealthy }),
		first(func(i instance) bool { return rollout && !i.available }),
		b.created.Compare(a.created), cmp.Compare(a.name, b.name))
}
