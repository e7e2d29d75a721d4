package rollout

import (
	"context"

	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rollout/wave"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// decide decides what is done next.
func (c *Controller) decide(_ context.Context, s *scope) (step.Result, error) {
	spec := &s.rollout.Spec
	in := wave.Input{
		Strategy: s.strategy, Change: &spec.Change, Paused: ptr.Deref(spec.Paused, false), Abort: spec.Abort, Attempt: attempt(s.rollout),
		ClassChanged: s.classChanged(), Approved: s.approved(), Now: s.now,
	}
	in.Open, in.Opens = open(s.windows, s.now)
	for _, m := range s.members {
		in.Clusters = append(in.Clusters, &wave.Cluster{Name: m.cluster.Name, UID: m.cluster.UID, Entry: *m.entry, Observation: m.seen})
	}
	decision := wave.Decide(in)
	s.decision = &decision
	return s.next(), nil
}

// next returns when the rollout is looked at again, unless an event comes first.
func (s *scope) next() step.Result {
	after := s.decision.Wake.Sub(s.now)
	if s.unconfirmed && (s.decision.Wake.IsZero() || after > confirmPoll) {
		return step.Again(confirmPoll)
	}
	if s.decision.Wake.IsZero() {
		return step.Done()
	}
	return step.Again(after)
}

// approved returns the stages with an approval of the current plan.
func (s *scope) approved() []string {
	var all []string
	for _, a := range s.rollout.Spec.Approvals {
		if a.PlanHash == s.planned() {
			all = append(all, a.Stage)
		}
	}
	return all
}

// approver returns who has approved a stage; empty if no one has.
func (s *scope) approver(stage string) string {
	for _, a := range s.rollout.Spec.Approvals {
		if a.Stage == stage && a.PlanHash == s.planned() {
			return a.User
		}
	}
	return ""
}

// member returns the member with a name.
func (s *scope) member(name string) *member {
	for _, m := range s.members {
		if m.cluster.Name == name {
			return m
		}
	}
	return nil
}

// has reports whether a decision has actions of a verb.
func has(d *wave.Decision, marks bool) bool {
	for _, a := range d.Actions {
		if (a.Verb == wave.Mark) == marks {
			return true
		}
	}
	return false
}

// ended returns the phase of a rollout that has ended; empty if it has not.
func ended(d *wave.Decision) fleetv1.RolloutPhase {
	if d.Phase == fleetv1.RolloutCompleted || d.Phase == fleetv1.RolloutAborted {
		return d.Phase
	}
	return ""
}
