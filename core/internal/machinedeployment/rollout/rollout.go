package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Set is what matters of a MachineSet.
type Set struct {
	Name    string
	Created time.Time
	// Revision tells the age of sets that were created within the same second.
	Revision int64
	// Replicas is how many machines the set is told to have.
	Replicas int32
	// Actual is how many it has, without those that are being deleted.
	Actual int32
	// Available is how many of them count as available.
	Available int32
	// Frozen is whether the set does not make Machines in place of those that go.
	Frozen bool
	// Desired and Max are the replicas of the deployment, and these plus the surge, when the set was scaled
	// last; zero when not known. Only Scale looks at them.
	Desired, Max int32
}

// Target is what a MachineSet is to be told.
type Target struct {
	Replicas int32
	// Frozen: see Set.
	Frozen bool
}

// Targets are the targets of all sets, by name.
type Targets map[string]Target

// Rollout is a MachineDeployment as it stands.
type Rollout struct {
	// Desired is spec.replicas.
	Desired int32
	// MaxSurge and MaxUnavailable are resolved: see Bounds.
	MaxSurge, MaxUnavailable int32
	// New is the set of the current template. It may not exist yet; then all its numbers are zero. It is nil
	// if there is none and none is to be made, which only Scale accepts.
	New *Set
	Old []Set
}

// Bounds resolves maxSurge (default 1, percentages rounded up) and maxUnavailable (default 0, percentages
// rounded down, at most desired). Both zero would never get anywhere: then one machine may be unavailable.
func Bounds(desired int32, surge, unavailable *intstr.IntOrString) (maxSurge, maxUnavailable int32, err error) {
	if surge == nil {
		surge = &intstr.IntOrString{Type: intstr.Int, IntVal: 1}
	}
	if unavailable == nil {
		unavailable = &intstr.IntOrString{}
	}
	up, err := intstr.GetScaledValueFromIntOrPercent(surge, int(desired), true)
	if err != nil {
		return 0, 0, fmt.Errorf("maxSurge: %w", err)
	}
	down, err := intstr.GetScaledValueFromIntOrPercent(unavailable, int(desired), false)
	if err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	if up == 0 && down == 0 {
		down = 1
	}
	return int32(up), min(int32(down), desired), nil
}

// RollingUpdate moves machines from the old sets to the new one. At most Desired+MaxSurge machines exist and
// at least Desired-MaxUnavailable are available, as far as that is in a rollout's hands: machines of old
// sets that are not available anyway go first.
func (r Rollout) RollingUpdate() Targets {
	targets := Targets{}
	grown := r.grown(r.Desired + r.MaxSurge)
	targets[r.New.Name] = Target{Replicas: grown}

	old := oldestFirst(r.Old)
	newAvailable := min(grown, r.New.Available)
	needed := r.Desired - r.MaxUnavailable
	budget := newAvailable - needed
	for _, s := range old {
		budget += s.Replicas
	}
	for i := range old {
		s := &old[i]
		budget -= s.take(min(s.Replicas-s.counted(), budget))
	}
	spare := newAvailable - needed
	for _, s := range old {
		spare += s.counted()
	}
	for i := range old {
		s := &old[i]
		spare -= s.take(min(s.Replicas, spare))
		targets[s.Name] = Target{Replicas: s.Replicas}
	}
	return targets
}

// OnDelete lets old machines be until somebody deletes them, and makes new ones for those that were. Old
// sets are frozen first, and give up the replicas of machines that are gone once they were seen to be so.
func (r Rollout) OnDelete() Targets {
	targets := Targets{}
	current := min(r.New.Replicas, r.Desired)
	old := oldestFirst(r.Old)
	surplus := current - r.Desired
	for i := range old {
		s := &old[i]
		if s.Frozen {
			s.Replicas = min(s.Replicas, s.Actual)
		}
		s.Frozen = s.Frozen || s.Replicas > 0
		surplus += s.Replicas
	}
	total := max(current, r.New.Actual)
	for i := range old {
		s := &old[i]
		surplus -= s.take(min(s.Replicas, surplus))
		targets[s.Name] = Target{Replicas: s.Replicas, Frozen: s.Frozen}
		total += max(s.Replicas, s.Actual)
	}
	if total < r.Desired {
		current = min(current+r.Desired-total, r.Desired)
	}
	targets[r.New.Name] = Target{Replicas: current}
	return targets
}

// grown is the size of the new set when all sets together may have limit machines.
func (r Rollout) grown(limit int32) int32 {
	if r.New.Replicas >= r.Desired {
		return r.Desired
	}
	total := max(r.New.Replicas, r.New.Actual)
	for _, s := range r.Old {
		total += max(s.Replicas, s.Actual)
	}
	return r.New.Replicas + max(0, min(limit-total, r.Desired-r.New.Replicas))
}

// counted is how many machines of the set can be counted on: a status may still hold machines that the set
// was already told to delete.
func (s *Set) counted() int32 { return min(s.Replicas, s.Available) }

// take lowers the set by n, if that is positive, and returns by how many.
func (s *Set) take(n int32) int32 {
	n = max(0, n)
	s.Replicas -= n
	return n
}

func oldestFirst(sets []Set) []Set {
	out := slices.Clone(sets)
	slices.SortFunc(out, byAge)
	return out
}

func byAge(a, b Set) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
}
