package wave

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
)

const (
	// DefaultDeadline is RolloutStrategy.ProgressDeadlineSeconds if it is not set.
	DefaultDeadline = time.Hour
	// grace is how long a changed Cluster may be unhealthy, or its topology fail, before it has failed: both happen for moments.
	grace = 2 * time.Minute
)

// Observation is what is seen of a Cluster.
type Observation struct {
	Deleting, Paused bool
	// AtTarget is set if the spec has the change.
	AtTarget bool
	// Settled is set if the Cluster reports that nothing of its spec is left to do; otherwise Unsettled says what it waits for.
	Settled   bool
	Unsettled string
	// Healthy is set if it is available and meets the health checks; otherwise Unhealthy says what is wrong. HealthChanged is when that last
	// changed, if it is known.
	Healthy       bool
	Unhealthy     string
	HealthChanged time.Time
	// Remediating is set if Machines are unhealthy and being replaced for it.
	Remediating bool
	// Failing is why the topology controller fails, and FailingSince since when; empty if it does not.
	Failing      string
	FailingSince time.Time
	// Confirmed is set if, besides, the API server has shown that all Machines are up to date. Unconfirmed says what is missing.
	Confirmed   bool
	Unconfirmed string
}

// Cluster is a Cluster that takes part in the rollout.
type Cluster struct {
	Name  string
	UID   types.UID
	Entry fleetv1.RolloutEntry
	Observation
}

// Claims reports whether a Cluster reports that its change, or its way back, is complete, which then has to be confirmed.
func (c *Cluster) Claims() bool {
	switch c.Entry.State {
	case fleetv1.RolloutStateUpdating:
		return c.AtTarget && c.Settled && c.Healthy && !c.Paused
	case fleetv1.RolloutStateRollingBack:
		return c.Settled && c.Healthy && !c.Paused
	}
	return false
}

// changing reports whether a Cluster is in change.
func (c *Cluster) changing() bool {
	return c.Entry.State == fleetv1.RolloutStateUpdating || c.Entry.State == fleetv1.RolloutStateRollingBack
}

// final reports whether nothing more happens to a Cluster, unless it is tried again or set back.
func (c *Cluster) final() bool {
	return c.Entry.State != fleetv1.RolloutStateWaiting && !c.changing()
}

// Input is what a decision is made of.
type Input struct {
	Strategy *fleetv1.RolloutStrategy
	Change   *fleetv1.RolloutChange
	// Clusters are all that have an entry of the rollout.
	Clusters []*Cluster
	// Approved are the stages whose approval is for the current plan.
	Approved []string
	Paused   bool
	Abort    fleetv1.RolloutAbort
	Attempt  int32
	// ClassChanged says how the class of the change was changed since the plan; empty if it was not.
	ClassChanged string
	// Open is set if changes may begin now, and Opens is when they may next; zero if never.
	Open  bool
	Opens time.Time
	Now   time.Time
}

// Verb is what is done with a Cluster.
type Verb int

// The verbs.
const (
	// Start sets the change in the Cluster.
	Start Verb = iota
	// Mark only records a state.
	Mark
	// RollBack sets back what the change has replaced.
	RollBack
)

// Action is what is done with a Cluster: after it, the entry has the state, and the message.
type Action struct {
	Verb    Verb
	Cluster *Cluster
	State   fleetv1.RolloutState
	Message string
}

// Decision is what a rollout does.
type Decision struct {
	// Actions are independent of each other, except that Clusters may be started only after all others were carried out.
	Actions []Action
	// Wake is when there is something to do again, unless an event comes first. Zero: only after events.
	Wake time.Time

	Phase fleetv1.RolloutPhase
	// Reason and Message are those of the condition Completed; Halted, if it is not empty, is the reason of the condition Halted.
	Reason, Message string
	Halted          string
	HaltedMessage   string
	// Stages are in the order of the strategy. Done and Failed count Clusters of all of them.
	Stages       []fleetv1.RolloutStageStatus
	Done, Failed int
}

// decider makes a decision.
type decider struct {
	Input
	out Decision
	// of are the Clusters of each stage, in their order.
	of [][]*Cluster
	// started is set for Clusters that an action of this decision has taken care of.
	handled map[types.UID]bool
	// waits is what Clusters wait for that cannot be changed now.
	waits []string
}

// Decide returns what a rollout does.
func Decide(in Input) Decision {
	d := &decider{Input: in, handled: map[types.UID]bool{}}
	d.group()
	d.retry()
	d.settle()
	d.halt()
	d.rollBack()
	current := d.current()
	d.start(current)
	d.count()
	d.phase(current)
	return d.out
}

// group puts the Clusters into their stages.
func (d *decider) group() {
	index := map[string]int{}
	for i := range d.Strategy.Stages {
		index[d.Strategy.Stages[i].Name] = i
	}
	d.of = make([][]*Cluster, len(d.Strategy.Stages))
	all := slices.Clone(d.Clusters)
	slices.SortFunc(all, func(a, b *Cluster) int { return rolloutplan.Order(a.UID, b.UID) })
	for _, c := range all {
		if i, ok := index[c.Entry.Stage]; ok {
			d.of[i] = append(d.of[i], c)
		}
	}
}

// act adds an action. The entry in memory has its state from then on, so that what follows counts it.
func (d *decider) act(verb Verb, c *Cluster, state fleetv1.RolloutState, message string) {
	d.out.Actions = append(d.out.Actions, Action{Verb: verb, Cluster: c, State: state, Message: message})
	c.Entry.State, c.Entry.Message, c.Entry.Attempt = state, message, d.Attempt
	c.Entry.Since.Time = d.Now
	d.handled[c.UID] = true
}

// wake wakes the rollout at a time, or before.
func (d *decider) wake(at time.Time) {
	if !at.After(d.Now) {
		at = d.Now.Add(time.Second)
	}
	if d.out.Wake.IsZero() || at.Before(d.out.Wake) {
		d.out.Wake = at
	}
}

func (d *decider) deadline() time.Duration {
	return time.Duration(ptr.Deref(d.Strategy.ProgressDeadlineSeconds, int32(DefaultDeadline/time.Second))) * time.Second
}

// all calls a function for each Cluster that no action was decided for.
func (d *decider) all(f func(stage int, c *Cluster)) {
	for i, clusters := range d.of {
		for _, c := range clusters {
			if !d.handled[c.UID] {
				f(i, c)
			}
		}
	}
}
