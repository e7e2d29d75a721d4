package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// maxReason is how long a reason in an entry may be.
const maxReason = 256

// plan gives each selected Cluster an entry with its stage, and with what the change does to it. When all have one, the plan gets its hash.
func (c *Controller) plan(ctx context.Context, s *scope) (step.Result, error) {
	s.replan()
	fixed := s.planned() != ""
	if !fixed && len(s.busy) > 0 {
		s.planning = s.busy[0]
		return step.WaitAtMost(invalidPoll, s.busy[0]), nil
	}
	key, err := rolloutplan.Hash(&s.rollout.Spec.Change, s.class, nil)
	if err != nil {
		return step.Result{}, err
	}
	stages, err := s.stages(fixed)
	if err != nil {
		return step.Result{}, err
	}
	// Clusters that no stage selects do not take part.
	s.members = slices.DeleteFunc(s.members, func(m *member) bool { return m.entry == nil && stages[m.cluster.UID] == "" })
	done, err := c.enter(ctx, s, key, stages, fixed)
	switch {
	case err != nil:
		return step.Result{}, err
	case !done:
		return step.WaitAtMost(time.Millisecond, "the plan of more Clusters"), nil
	}
	if fixed {
		return step.Done(), nil
	}
	return s.complete()
}

// replan begins the plan anew if the class was changed since, and the user tries again.
func (s *scope) replan() {
	r := s.rollout
	if s.planned() == "" || r.Status.Plan == nil || s.classChanged() == "" || attempt(r) <= r.Status.Plan.Attempt {
		return
	}
	delete(r.Annotations, fleetv1.RolloutPlanAnnotation)
	r.Status.Plan = nil
}

// classChanged says how the class was changed since the plan; empty if it was not.
func (s *scope) classChanged() string {
	plan := s.rollout.Status.Plan
	switch {
	case plan == nil || plan.Class == nil || s.class == nil:
		return ""
	case plan.Class.UID != s.class.UID:
		return fmt.Sprintf("ClusterClass %s/%s was replaced by another one of its name since the plan", s.class.Namespace, s.class.Name)
	case plan.Class.Generation != s.class.Generation:
		return fmt.Sprintf("ClusterClass %s/%s was changed since the plan (generation %d, now %d)", s.class.Namespace, s.class.Name,
			plan.Class.Generation, s.class.Generation)
	}
	return ""
}

// stages returns the stage of each Cluster that has none for certain.
func (s *scope) stages(fixed bool) (map[types.UID]string, error) {
	all := make([]*clusterv1.Cluster, 0, len(s.members))
	for _, m := range s.members {
		all = append(all, m.cluster)
	}
	stages, err := rolloutplan.Assign(s.strategy, all)
	if err != nil {
		return nil, err
	}
	for _, m := range s.members {
		if m.entry != nil && (fixed || m.entry.State != fleetv1.RolloutStateWaiting) {
			stages[m.cluster.UID] = m.entry.Stage
		}
	}
	return stages, nil
}

// enter plans Clusters until all have an entry, or some time has passed. It reports whether all have one.
func (c *Controller) enter(ctx context.Context, s *scope, key string, stages map[types.UID]string, fixed bool) (bool, error) {
	if !fixed {
		c.planner.Forget() // A class that was read earlier may be older than the one that the plan is recorded for.
	}
	var written []client.Object
	defer func() { c.await(ctx, s, written) }()
	for i, m := range s.members {
		if e := m.entry; e != nil && (fixed || e.Plan == key && e.Stage == stages[m.cluster.UID] || e.Previous != nil) {
			continue
		}
		if !fixed && c.Clock.Since(s.now) > planTime {
			s.planning = fmt.Sprintf("%d of %d Clusters are planned", i, len(s.members))
			return false, nil
		}
		entry, err := c.planOne(ctx, s, m.cluster, key, stages[m.cluster.UID])
		if err != nil {
			s.planning = fmt.Sprintf("%d of %d Clusters are planned, planning %s failed", i, len(s.members), m.cluster.Name)
			return false, err
		}
		cluster, err := c.write(ctx, m.cluster, entry, nil)
		if err != nil {
			return false, err
		}
		m.entry, m.cluster = entry, cluster
		written = append(written, cluster)
	}
	return true, nil
}

// planOne returns the entry of a Cluster that was not changed yet.
func (c *Controller) planOne(ctx context.Context, s *scope, cached *clusterv1.Cluster, key, stage string) (*fleetv1.RolloutEntry, error) {
	// The cache does not have the managers of fields.
	live := &clusterv1.Cluster{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(cached), live); err != nil {
		return nil, fmt.Errorf("reading Cluster %s: %w", cached.Name, err)
	}
	effect, err := c.planner.Effect(ctx, live, &s.rollout.Spec.Change, ptr.Deref(s.rollout.Spec.Force, false))
	if err != nil {
		return nil, fmt.Errorf("planning Cluster %s: %w", cached.Name, err)
	}
	e := &fleetv1.RolloutEntry{
		Rollout: s.rollout.Name, ID: s.id(), Stage: stage, Plan: key, Attempt: attempt(s.rollout),
		Effect: effect.Effect, Machines: effect.Machines, Reason: condition.Truncate(effect.Reason, maxReason),
		State: fleetv1.RolloutStateWaiting, Since: metav1.NewTime(c.Clock.Now()),
	}
	if e.Effect == fleetv1.RolloutForbidden {
		e.State, e.Message = fleetv1.RolloutStateSkipped, "The change is not permitted: "+e.Reason
	}
	return e, nil
}

// complete records the plan. Its annotation is in the API server before the first Cluster is changed.
func (s *scope) complete() (step.Result, error) {
	var outcomes []rolloutplan.Outcome
	for _, m := range s.members {
		outcomes = append(outcomes, rolloutplan.Outcome{
			Cluster: m.cluster.Name, UID: m.cluster.UID, Stage: m.entry.Stage,
			Effect: rolloutplan.Effect{Effect: m.entry.Effect, Machines: m.entry.Machines, Reason: m.entry.Reason},
		})
	}
	plan, err := rolloutplan.Summary(&s.rollout.Spec.Change, s.class, outcomes)
	if err != nil {
		return step.Result{}, err
	}
	plan.Attempt = attempt(s.rollout)
	s.rollout.Status.Plan, s.rollout.Status.Strategy = plan, s.strategy.DeepCopy()
	annotate(s.rollout, fleetv1.RolloutPlanAnnotation, plan.Hash)
	return step.Checkpoint(), nil
}

func attempt(r *fleetv1.ClusterRollout) int32 { return ptr.Deref(r.Spec.Attempt, 0) }
