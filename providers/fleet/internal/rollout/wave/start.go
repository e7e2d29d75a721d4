package wave

import (
	"slices"
	"time"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// start changes Clusters of the current stage, as many as it permits at the same time.
func (d *decider) start(stage int) {
	if stage == len(d.of) || d.Abort != "" || d.out.Halted != "" || d.Paused || !d.approved(stage) {
		return
	}
	d.leaveBehind(stage)
	if !d.Open {
		if !d.Opens.IsZero() {
			d.wake(d.Opens)
		}
		return
	}
	free := d.limits(stage).concurrent
	for _, c := range d.Clusters {
		if c.changing() {
			free--
		}
	}
	for _, c := range d.of[stage] {
		if c.Entry.State != fleetv1.RolloutStateWaiting || d.handled[c.UID] {
			continue
		}
		if c.AtTarget && c.Entry.Previous == nil {
			d.act(Mark, c, fleetv1.RolloutStateDone, "It had what the change sets")
			continue
		}
		if why := c.notYet(); why != "" {
			d.waits = append(d.waits, c.Name+" "+why)
			continue
		}
		if !c.Healthy && d.Strategy.UnhealthyClusters != fleetv1.UnhealthyClustersUpdate {
			if d.Strategy.UnhealthyClusters == fleetv1.UnhealthyClustersBlock {
				d.waits = append(d.waits, c.Name+" is not healthy: "+c.Unhealthy)
				continue
			}
			d.act(Mark, c, fleetv1.RolloutStateSkipped, "Not healthy before its change: "+c.Unhealthy)
			continue
		}
		if free > 0 {
			free--
			d.act(Start, c, fleetv1.RolloutStateUpdating, "")
			d.wake(d.Now.Add(d.deadline()))
		}
	}
}

// notYet returns why a Cluster cannot be changed now; empty if it can.
func (c *Cluster) notYet() string {
	switch {
	case c.Paused:
		return "is paused"
	case !c.Settled && c.Healthy:
		return "is in another change: " + c.Unsettled
	}
	return ""
}

// leaveBehind skips Clusters that have kept their stage waiting for longer than a change may take, when nothing else of it is left: one
// Cluster that stays paused must not stop all others.
func (d *decider) leaveBehind(stage int) {
	var last time.Time
	var left []*Cluster
	for _, c := range d.of[stage] {
		switch {
		case c.changing():
			return
		case c.Entry.State != fleetv1.RolloutStateWaiting:
			last = later(last, c.Entry.Since.Time)
		case c.notYet() == "" && (c.Healthy || d.Strategy.UnhealthyClusters != fleetv1.UnhealthyClustersBlock):
			return
		case d.Strategy.UnhealthyClusters == fleetv1.UnhealthyClustersBlock && !c.Paused:
			return // The user wants to wait for Clusters that are not healthy.
		default:
			left = append(left, c)
			last = later(last, c.Entry.Since.Time)
		}
	}
	for i := range stage {
		for _, c := range d.of[i] {
			last = later(last, c.Entry.Since.Time)
		}
	}
	if len(left) == 0 {
		return
	}
	if due := last.Add(d.deadline()); d.Now.Before(due) {
		d.wake(due)
		return
	}
	for _, c := range left {
		d.act(Mark, c, fleetv1.RolloutStateSkipped, "Skipped after "+d.deadline().String()+", because it "+c.notYet())
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// approved reports whether a stage needs no approval, or has one, or has begun already.
func (d *decider) approved(stage int) bool {
	s := &d.Strategy.Stages[stage]
	return s.Gate != fleetv1.RolloutGateApproval || slices.Contains(d.Approved, s.Name)
}
