package rollout

// UpdateInPlace is RollingUpdate if Machines of sets that are Movable can be updated in place: these move to the new set, instead of being
// deleted. The new set has room for as many as it lacks, without those on their way; the rest is deleted when all of them have arrived. The
// surge waits: it is zero while anything moves, is updated in place or changes its size, and otherwise one, to get started.
func (r Rollout) UpdateInPlace() Targets {
	moving := int64(0)
	for _, s := range r.Old {
		moving += s.leaving()
	}
	room := int64(r.Desired) - int64(r.New.Replicas) - moving
	ends := room <= 0 && moving == 0
	targets := r.updateInPlace(0, room, ends)
	if r.MaxSurge > 0 && moving == 0 && r.New.Updating == 0 && r.idle(targets) {
		targets = r.updateInPlace(1, room, ends)
	}
	return targets
}

// leaving returns how many Machines are on their way to the new set.
func (s *Set) leaving() int64 {
	if !s.Movable || !s.Moving {
		return 0
	}
	return max(0, int64(s.Actual)-int64(s.Replicas))
}

// idle reports whether no set changes its size, now or by the targets.
func (r Rollout) idle(targets Targets) bool {
	for _, s := range append([]Set{*r.New}, r.Old...) {
		if s.Actual != s.Replicas || targets[s.Name].Replicas != s.Replicas {
			return false
		}
	}
	return true
}

// updateInPlace returns the targets with a surge. Movable sets lose at most room Machines, unless the rollout ends: then no
// further Machine moves.
func (r Rollout) updateInPlace(surge int32, room int64, ends bool) Targets {
	movable := map[string]bool{}
	for _, s := range r.Old {
		movable[s.Name] = s.Movable && !ends
	}
	reduce := func(s *Set, n int64) int64 {
		if movable[s.Name] {
			n = max(0, min(n, room))
			room -= n
		}
		return s.scaleDown(n)
	}
	targets := r.rolling(r.Desired+surge, reduce)
	for _, s := range r.Old {
		t := targets[s.Name]
		t.Moving = movable[s.Name] && (s.Replicas > 0 || s.Actual > 0)
		targets[s.Name] = t
	}
	return targets
}
