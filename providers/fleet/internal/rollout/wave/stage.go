package wave

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// limits are those of a stage, in Clusters.
type limits struct{ concurrent, failures int }

func (d *decider) limits(stage int) limits {
	s, total := &d.Strategy.Stages[stage], len(d.of[stage])
	return limits{
		concurrent: max(scaled(s.MaxConcurrent, 1, total), 1),
		failures:   max(scaled(s.MaxFailures, 0, total), 0),
	}
}

// scaled returns a number, or a percentage of a total, rounded down. Values that are neither are refused at admission, and count as unset.
func scaled(value *intstr.IntOrString, unset, total int) int {
	if value == nil {
		return unset
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, total, false)
	if err != nil {
		return unset
	}
	return n
}

// failures returns how many Clusters of a stage have failed in this attempt.
func (d *decider) failures(stage int) int {
	n := 0
	for _, c := range d.of[stage] {
		if c.Entry.Attempt != d.Attempt {
			continue
		}
		switch c.Entry.State {
		case fleetv1.RolloutStateFailed:
			n++
		case fleetv1.RolloutStateRollingBack, fleetv1.RolloutStateRolledBack:
			if d.Abort == "" { // They were set back because they had failed.
				n++
			}
		}
	}
	return n
}

// halt decides whether the rollout has halted.
func (d *decider) halt() {
	for i := range d.of {
		if n, limit := d.failures(i), d.limits(i).failures; n > limit {
			d.out.Halted = fleetv1.RolloutTooManyFailuresReason
			d.out.HaltedMessage = fmt.Sprintf("%s of stage %s failed, at most %d may: fix the cause, and increase spec.attempt, or set spec.abort",
				clusters(n), d.Strategy.Stages[i].Name, limit)
			return
		}
	}
	if d.ClassChanged != "" {
		d.out.Halted = fleetv1.RolloutClassChangedReason
		d.out.HaltedMessage = d.ClassChanged + ": increase spec.attempt to plan anew, or set spec.abort"
	}
}

// ended reports whether all Clusters of a stage are in a final state.
func (d *decider) ended(stage int) bool {
	for _, c := range d.of[stage] {
		if !c.final() {
			return false
		}
	}
	return true
}

// soakEnd returns when the soak time of a stage whose Clusters have all ended is over; zero if nothing of it was changed.
func (d *decider) soakEnd(stage int) time.Time {
	var last time.Time
	for _, c := range d.of[stage] {
		if c.Entry.State != fleetv1.RolloutStateDone {
			continue
		}
		for _, at := range []time.Time{c.Entry.Since.Time, c.HealthChanged} {
			if at.After(last) && (c.Healthy || at.Equal(c.Entry.Since.Time)) {
				last = at
			}
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(time.Duration(ptr.Deref(d.Strategy.Stages[stage].SoakSeconds, 0)) * time.Second)
}

// soaked reports whether the soak time of a stage is over: all changed Clusters are healthy, and have been for that long.
func (d *decider) soaked(stage int) bool {
	if d.Now.Before(d.soakEnd(stage)) {
		return false
	}
	if ptr.Deref(d.Strategy.Stages[stage].SoakSeconds, 0) == 0 {
		return true
	}
	for _, c := range d.of[stage] {
		if c.Entry.State == fleetv1.RolloutStateDone && !c.Healthy && !c.Deleting && !c.Paused {
			return false
		}
	}
	return true
}

// soaking returns the stage whose soak time has begun and is not over; -1 if there is none. A stage after which another one has begun is
// over: Clusters that become unhealthy later are no longer about the rollout.
func (d *decider) soaking() int {
	for i, of := range slices.Backward(d.of) {
		begun := false
		for _, c := range of {
			begun = begun || c.Entry.State == fleetv1.RolloutStateDone || c.changing() || c.Entry.State == fleetv1.RolloutStateFailed
		}
		if !begun {
			continue
		}
		if d.ended(i) && ptr.Deref(d.Strategy.Stages[i].SoakSeconds, 0) > 0 && !d.soaked(i) {
			return i
		}
		return -1
	}
	return -1
}

// current returns the first stage that is not over; the number of stages if all are.
func (d *decider) current() int {
	last := d.begun()
	for i := range d.of {
		if !d.ended(i) || i >= last && !d.soaked(i) {
			return i
		}
	}
	return len(d.of)
}

// begun returns the last stage that has begun; -1 if none has.
func (d *decider) begun() int {
	for i, of := range slices.Backward(d.of) {
		for _, c := range of {
			if s := c.Entry.State; s != fleetv1.RolloutStateWaiting && s != fleetv1.RolloutStateSkipped {
				return i
			}
		}
	}
	return -1
}

// count counts the Clusters of each stage.
func (d *decider) count() {
	for i := range d.of {
		s := fleetv1.RolloutStageStatus{Name: d.Strategy.Stages[i].Name}
		for _, c := range d.of[i] {
			s.Count(c.Entry.State)
		}
		if end := d.soakEnd(i); d.ended(i) && end.After(d.Now) && ptr.Deref(d.Strategy.Stages[i].SoakSeconds, 0) > 0 {
			s.SoakUntil = &metav1.Time{Time: end}
		}
		d.out.Stages = append(d.out.Stages, s)
		d.out.Done += int(s.Done)
		d.out.Failed += int(s.Failed)
	}
}
