package rollout

import (
	"cmp"
	"math"
	"slices"
)

// Scale is the only move while a rollout is paused: it scales to the desired number of Machines without continuing the rollout.
// If proportional is set, it distributes the change over the sets in proportion to their sizes, up to Desired+MaxSurge.
// Otherwise it changes the sets only if at most one of them has replicas, or the new one is saturated.
func (r Rollout) Scale(proportional bool) Targets {
	all := slices.Clone(r.Old)
	if r.New != nil {
		all = append(all, *r.New)
	}
	targets := Targets{}
	active := make([]Set, 0, len(all))
	for _, s := range all {
		targets[s.Name] = Target{Replicas: s.Replicas, Frozen: s.Frozen}
		if s.Replicas > 0 {
			active = append(active, s)
		}
	}
	switch {
	case len(all) == 0:
	case len(active) == 0:
		targets.resize(r.latest(), r.Desired)
	case len(active) == 1:
		targets.resize(active[0], r.Desired)
	case r.saturated():
		for _, s := range r.Old {
			targets.resize(s, 0)
		}
	case proportional:
		r.spread(active, targets)
	}
	return targets
}

func (t Targets) resize(s Set, replicas int32) {
	t[s.Name] = Target{Replicas: replicas, Frozen: s.Frozen}
}

// latest returns the new set, or the most recently created one if there is no new set.
func (r Rollout) latest() Set {
	if r.New != nil {
		return *r.New
	}
	return slices.MaxFunc(r.Old, byAge)
}

// saturated reports whether the new set has all the desired Machines, and all of them are available.
func (r Rollout) saturated() bool {
	return r.New != nil && r.New.Replicas == r.Desired && r.New.Desired == r.Desired && r.New.Available == r.Desired
}

// spread distributes the difference to the allowed number of Machines over the active sets.
func (r Rollout) spread(active []Set, targets Targets) {
	allowed := int64(0)
	if r.Desired > 0 {
		allowed = int64(r.Desired) + int64(r.MaxSurge)
	}
	change, actual := allowed, int64(0)
	for _, s := range active {
		change -= int64(s.Replicas)
		actual += int64(s.Actual)
	}
	if change == 0 {
		return
	}
	slices.SortFunc(active, func(a, b Set) int {
		age := byAge(a, b)
		if change > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(b.Replicas, a.Replicas), age)
	})
	left := change
	sizes := make([]int64, len(active))
	for i, s := range active {
		share := s.share(allowed, cmp.Or(int64(s.Max), actual, allowed, 1))
		if change > 0 {
			share = max(0, min(share, left))
		} else {
			share = min(0, max(share, left))
		}
		sizes[i] = int64(s.Replicas) + share
		left -= share
	}
	sizes[0] += left
	for i, s := range active {
		targets.resize(s, int32(max(0, min(sizes[i], math.MaxInt32))))
	}
}

// share returns by how much the set changes if the total number of Machines changes from previous to allowed.
func (s Set) share(allowed, previous int64) int64 {
	size, rest := int64(s.Replicas)*allowed/previous, int64(s.Replicas)*allowed%previous
	if rest >= previous-rest { // rounded to the nearest number, without doubling, which could overflow
		size++
	}
	return size - int64(s.Replicas)
}
