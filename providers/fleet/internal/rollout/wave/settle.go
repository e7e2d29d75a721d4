package wave

import (
	"fmt"
	"time"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
)

// retry considers Clusters that have failed in an earlier attempt, or were skipped because of their state, anew.
func (d *decider) retry() {
	if d.Abort != "" {
		return
	}
	d.all(func(_ int, c *Cluster) {
		e := &c.Entry
		if e.Attempt >= d.Attempt || c.Deleting {
			return
		}
		switch {
		case e.State == fleetv1.RolloutStateFailed && c.AtTarget:
			d.act(Mark, c, fleetv1.RolloutStateUpdating, "Tried again")
		case e.State == fleetv1.RolloutStateFailed, e.State == fleetv1.RolloutStateRolledBack,
			e.State == fleetv1.RolloutStateSkipped && e.Effect != fleetv1.RolloutForbidden:
			d.act(Mark, c, fleetv1.RolloutStateWaiting, "")
		}
	})
}

// settle decides what has become of Clusters that were changed or set back, also if the rollout is paused, halted or aborted.
func (d *decider) settle() {
	soaking := d.soaking()
	d.all(func(stage int, c *Cluster) {
		switch c.Entry.State {
		case fleetv1.RolloutStateWaiting:
			if c.Deleting {
				d.act(Mark, c, fleetv1.RolloutStateSkipped, "The Cluster is being deleted")
			}
		case fleetv1.RolloutStateUpdating:
			d.settleUpdating(c)
		case fleetv1.RolloutStateRollingBack:
			d.settleRollingBack(c)
		case fleetv1.RolloutStateDone:
			if stage == soaking && d.Abort == "" {
				d.settleDone(c)
			}
		}
	})
}

func (d *decider) settleUpdating(c *Cluster) {
	due := c.Entry.Since.Add(d.deadline())
	switch {
	case c.Deleting:
		d.act(Mark, c, fleetv1.RolloutStateSkipped, "The Cluster was deleted during its change")
	case !c.AtTarget:
		d.act(Mark, c, fleetv1.RolloutStateFailed, "The change in spec.topology was undone or replaced by others")
	case c.Confirmed:
		d.act(Mark, c, fleetv1.RolloutStateDone, "")
	case c.Paused:
		d.waits = append(d.waits, c.Name+" is paused")
	case c.Remediating && !c.Entry.Unhealthy:
		d.act(Mark, c, fleetv1.RolloutStateFailed, "Machines became unhealthy: "+c.because())
	case c.Failing != "" && !d.Now.Before(c.failingSince().Add(grace)):
		d.act(Mark, c, fleetv1.RolloutStateFailed, "The topology cannot be reconciled: "+c.Failing)
	case !d.Now.Before(due):
		d.act(Mark, c, fleetv1.RolloutStateFailed, fmt.Sprintf("Not complete within %s: %s", d.deadline(), c.because()))
	default:
		if c.Failing != "" {
			d.wake(c.failingSince().Add(grace))
		}
		d.wake(due)
	}
}

// failingSince is since when the topology fails: the failure may be older than the change.
func (c *Cluster) failingSince() time.Time {
	if c.FailingSince.After(c.Entry.Since.Time) {
		return c.FailingSince
	}
	return c.Entry.Since.Time
}

// because returns what a Cluster waits for, for people.
func (c *Cluster) because() string {
	for _, text := range []string{c.Failing, c.Unhealthy, c.Unsettled, c.Unconfirmed} {
		if text != "" {
			return text
		}
	}
	return "it reports nothing wrong"
}

func (d *decider) settleRollingBack(c *Cluster) {
	due := c.Entry.Since.Add(d.deadline())
	switch {
	case c.Deleting, c.Confirmed:
		d.act(Mark, c, fleetv1.RolloutStateRolledBack, "")
	case !d.Now.Before(due):
		d.act(Mark, c, fleetv1.RolloutStateRolledBack, fmt.Sprintf("Not healthy within %s after it was set back: %s", d.deadline(), c.because()))
	default:
		d.wake(due)
	}
}

// settleDone fails a Cluster that does not stay healthy during the soak time of its stage.
func (d *decider) settleDone(c *Cluster) {
	if c.Healthy || c.Deleting || c.Paused {
		return
	}
	since := c.HealthChanged
	if since.Before(c.Entry.Since.Time) {
		since = c.Entry.Since.Time
	}
	if d.Now.Before(since.Add(grace)) {
		d.wake(since.Add(grace))
		return
	}
	d.act(Mark, c, fleetv1.RolloutStateFailed, "Did not stay healthy: "+c.Unhealthy)
}

// rollBack sets Clusters back: those that have failed, if the rollout has halted and the strategy says so, and all that were changed, if
// it is aborted with Rollback. At most as many as a stage changes at the same time are set back at the same time.
func (d *decider) rollBack() {
	all := d.Abort == fleetv1.RolloutAbortRollback
	failed := d.out.Halted == fleetv1.RolloutTooManyFailuresReason && d.Strategy.OnFailure == fleetv1.RolloutRollback && d.Abort == ""
	if !all && !failed {
		return
	}
	for i, clusters := range d.of {
		free := d.limits(i).concurrent
		for _, c := range clusters {
			if c.Entry.State == fleetv1.RolloutStateRollingBack {
				free--
			}
		}
		for _, c := range clusters {
			if free <= 0 || !d.setBack(c, all) {
				continue
			}
			free--
			d.act(RollBack, c, fleetv1.RolloutStateRollingBack, c.Entry.Message)
		}
	}
}

// setBack reports whether a Cluster has to be set back now.
func (d *decider) setBack(c *Cluster, all bool) bool {
	e := &c.Entry
	if d.handled[c.UID] || c.Deleting || c.Paused || e.Previous == nil || !rolloutplan.Reversible(d.Change) || !c.AtTarget {
		return false
	}
	switch e.State {
	case fleetv1.RolloutStateFailed:
		return all || e.Attempt == d.Attempt
	case fleetv1.RolloutStateDone, fleetv1.RolloutStateUpdating:
		return all
	}
	return false
}
