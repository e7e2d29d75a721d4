package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Set is the observed state of a MachineSet.
type Set struct {
	Name    string
	Created time.Time
	// Revision orders sets that were created within the same second.
	Revision int64
	// Replicas is spec.replicas.
	Replicas int32
	// Actual is the number of Machines, without those that are being deleted.
	Actual int32
	// Available is the number of available Machines.
	Available int32
	// Frozen is whether the set must not replace deleted Machines.
	Frozen bool
	// Desired is spec.replicas of the deployment, and Max that number plus the surge, when the set was last scaled. Zero if
	// unknown. Only Scale uses them.
	Desired, Max int32
}

// Target is the planned state of a MachineSet.
type Target struct {
	Replicas int32
	// Frozen is whether the set must not replace deleted Machines.
	Frozen bool
}

// Targets maps the names of all sets to their targets.
type Targets map[string]Target

// Rollout is the observed state of a MachineDeployment.
type Rollout struct {
	// Desired is spec.replicas.
	Desired int32
	// MaxSurge and MaxUnavailable are absolute numbers, see Bounds.
	MaxSurge, MaxUnavailable int32
	// New is the set of the current template. If it does not exist yet, all its numbers are zero. Nil if it does not exist and
	// must not be created, which only Scale supports.
	New *Set
	Old []Set
}

// Bounds resolves maxSurge (default 1, percentages rounded up) and maxUnavailable (default 0, percentages rounded down, at most
// desired). If both are zero, a rollout could not make progress: then maxUnavailable becomes one.
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

// RollingUpdate moves replicas from the old sets to the new one. It adds Machines only up to Desired+MaxSurge, and removes
// available ones only down to Desired-MaxUnavailable. Unavailable Machines of old sets are removed first.
func (r Rollout) RollingUpdate() Targets {
	targets := Targets{}
	replicas := r.newReplicas(r.Desired + r.MaxSurge)
	targets[r.New.Name] = Target{Replicas: replicas}

	old := oldestFirst(r.Old)
	newAvailable := min(replicas, r.New.Available)
	needed := r.Desired - r.MaxUnavailable
	budget := newAvailable - needed
	for _, s := range old {
		budget += s.Replicas
	}
	for i := range old {
		s := &old[i]
		budget -= s.scaleDown(min(s.Replicas-s.keptAvailable(), budget))
	}
	spare := newAvailable - needed
	for _, s := range old {
		spare += s.keptAvailable()
	}
	for i := range old {
		s := &old[i]
		spare -= s.scaleDown(min(s.Replicas, spare))
		targets[s.Name] = Target{Replicas: s.Replicas}
	}
	return targets
}

// OnDelete keeps Machines of old sets until a user deletes them, and replaces those with Machines of the new set. It freezes old
// sets first; later calls reduce their replicas to the Machines that are left.
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
		surplus -= s.scaleDown(min(s.Replicas, surplus))
		targets[s.Name] = Target{Replicas: s.Replicas, Frozen: s.Frozen}
		total += max(s.Replicas, s.Actual)
	}
	if total < r.Desired {
		current = min(current+r.Desired-total, r.Desired)
	}
	targets[r.New.Name] = Target{Replicas: current}
	return targets
}

// newReplicas returns the replicas of the new set if all sets together may have at most limit Machines.
func (r Rollout) newReplicas(limit int32) int32 {
	if r.New.Replicas >= r.Desired {
		return r.Desired
	}
	total := max(r.New.Replicas, r.New.Actual)
	for _, s := range r.Old {
		total += max(s.Replicas, s.Actual)
	}
	return r.New.Replicas + max(0, min(limit-total, r.Desired-r.New.Replicas))
}

// keptAvailable returns how many available Machines the set keeps: Available may include Machines that the set is about to
// delete.
func (s *Set) keptAvailable() int32 { return min(s.Replicas, s.Available) }

// scaleDown reduces the replicas by n if it is positive, and returns the reduction.
func (s *Set) scaleDown(n int32) int32 {
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
