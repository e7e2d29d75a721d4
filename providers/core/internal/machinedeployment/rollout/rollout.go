package rollout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
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
	// Movable is whether the Machines of an old set can be updated in place, and Moving whether the set hands its Machines over to the new
	// one when it is scaled down. Only UpdateInPlace uses Movable.
	Movable, Moving bool
	// Updating is the number of Machines that are being updated in place.
	Updating int32
	// Desired is spec.replicas of the deployment, and Max that number plus the surge, when the set was last scaled. Zero if
	// unknown. Only Scale uses them.
	Desired, Max int32
}

// Target is the planned state of a MachineSet.
type Target struct {
	Replicas int32
	// Frozen is whether the set must not replace deleted Machines.
	Frozen bool
	// Moving is whether the set hands its Machines over to the new one when it is scaled down.
	Moving bool
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
// desired). If both are zero, a rollout could not make progress: then maxUnavailable becomes one. Negative numbers, which objects from
// before they were rejected may have, count as zero. Desired plus the surge always fits into an int32.
func Bounds(desired int32, surge, unavailable *intstr.IntOrString) (maxSurge, maxUnavailable int32, err error) {
	if surge == nil {
		surge = &intstr.IntOrString{Type: intstr.Int, IntVal: 1}
	}
	if unavailable == nil {
		unavailable = &intstr.IntOrString{}
	}
	up, err := bounds.Scaled(surge, desired, true)
	if err != nil {
		return 0, 0, fmt.Errorf("maxSurge: %w", err)
	}
	down, err := bounds.Scaled(unavailable, desired, false)
	if err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	up, down = max(0, up), max(0, down)
	if up == 0 && down == 0 {
		down = 1
	}
	return min(up, math.MaxInt32-max(0, desired)), min(down, desired), nil
}

// RollingUpdate moves replicas from the old sets to the new one. It adds Machines only up to Desired+MaxSurge, and removes
// available ones only down to Desired-MaxUnavailable. Unavailable Machines of old sets are removed first.
func (r Rollout) RollingUpdate() Targets {
	return r.rolling(r.Desired+r.MaxSurge, (*Set).scaleDown)
}

// rolling moves replicas to the new set, with at most limit Machines. reduce scales an old set down by at most n, and returns by how many.
func (r Rollout) rolling(limit int32, reduce func(s *Set, n int64) int64) Targets {
	targets := Targets{}
	replicas := r.newReplicas(limit)
	targets[r.New.Name] = Target{Replicas: replicas}

	old := oldestFirst(r.Old)
	newAvailable := int64(min(replicas, r.New.Available))
	needed := int64(r.Desired - r.MaxUnavailable)
	budget := newAvailable - needed
	for _, s := range old {
		budget += int64(s.Replicas)
	}
	for i := range old {
		s := &old[i]
		budget -= reduce(s, min(int64(s.Replicas-s.keptAvailable()), budget))
	}
	spare := newAvailable - needed
	for _, s := range old {
		spare += int64(s.keptAvailable())
	}
	for i := range old {
		s := &old[i]
		spare -= reduce(s, min(int64(s.Replicas), spare))
		targets[s.Name] = Target{Replicas: s.Replicas}
	}
	return targets
}

// OnDelete keeps Machines of old sets until a user deletes them, and replaces those with Machines of the new set. It freezes old
// sets first; later calls reduce their replicas to the Machines that are left.
func (r Rollout) OnDelete() Targets {
	targets := Targets{}
	current, desired := int64(min(r.New.Replicas, r.Desired)), int64(r.Desired)
	old := oldestFirst(r.Old)
	surplus := current - desired
	for i := range old {
		s := &old[i]
		if s.Frozen {
			s.Replicas = min(s.Replicas, s.Actual)
		}
		s.Frozen = s.Frozen || s.Replicas > 0
		surplus += int64(s.Replicas)
	}
	total := max(current, int64(r.New.Actual))
	for i := range old {
		s := &old[i]
		surplus -= s.scaleDown(min(int64(s.Replicas), surplus))
		targets[s.Name] = Target{Replicas: s.Replicas, Frozen: s.Frozen}
		total += int64(max(s.Replicas, s.Actual))
	}
	if total < desired {
		current = min(current+desired-total, desired)
	}
	targets[r.New.Name] = Target{Replicas: int32(current)}
	return targets
}

// newReplicas returns the replicas of the new set if all sets together may have at most limit Machines.
func (r Rollout) newReplicas(limit int32) int32 {
	if r.New.Replicas >= r.Desired {
		return r.Desired
	}
	total := int64(max(r.New.Replicas, r.New.Actual))
	for _, s := range r.Old {
		total += int64(max(s.Replicas, s.Actual))
	}
	return r.New.Replicas + int32(max(0, min(int64(limit)-total, int64(r.Desired-r.New.Replicas))))
}

// keptAvailable returns how many available Machines the set keeps: Available may include Machines that the set is about to
// delete.
func (s *Set) keptAvailable() int32 { return min(s.Replicas, s.Available) }

// scaleDown reduces the replicas by n if it is positive, and returns the reduction.
func (s *Set) scaleDown(n int64) int64 {
	n = max(0, n)
	s.Replicas -= int32(n) // n is at most Replicas
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
