package machineset

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// confirm decides how the number of Machines changes. If it has to change according to the cache, confirm reads Cluster,
// MachineSet and Machines from the API server and decides again: a cache without the latest Machines, deletions or replicas would
// lead to too many creations or deletions. That costs three reads whenever Machines are created or deleted, and none otherwise.
//
// The first Machines of a MachineSet cost fewer reads, usually none: see readLive.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	if s.set.Spec.Replicas == nil {
		s.report(
			step.Terminal(fmt.Errorf("spec.replicas of MachineSet %s is not set: update the object, so that the webhook defaults it", s.set.Name)))
		return step.Done(), nil
	}
	decision, result, err := c.decide(ctx, s)
	if err != nil || decision.none() {
		return result, err
	}
	if result, err := c.readLive(ctx, s, decision); err != nil || result.Ends() {
		return result, err
	}
	s.change, result, err = c.decide(ctx, s)
	if err != nil || result.Ends() || len(s.change.move) == 0 {
		return result, err
	}
	if s.change.target, err = c.target(ctx, s.set); err != nil || s.change.target == nil {
		s.change.move = nil // Its MachineDeployment decides anew.
	}
	return result, err
}

// decide computes how the number of Machines has to change from the Machines in the scope. If a preflight check fails, the result
// requeues the MachineSet.
func (c *Controller) decide(ctx context.Context, s *scope) (change, step.Result, error) {
	desired, actual := int(max(0, *s.set.Spec.Replicas)), len(s.machines)
	switch {
	case actual > desired:
		var out change
		if c.inPlace && inplace.MovesTo(s.set) != "" {
			out.move, out.delete = handOver(s.set, s.machines, actual-desired, c.Clock.Now())
			return out, step.Done(), nil
		}
		for _, m := range toDelete(s.set, s.machines, actual-desired, c.Clock.Now()) {
			if m.DeletionTimestamp.IsZero() {
				out.delete = append(out.delete, m)
			}
		}
		return out, step.Done(), nil
	case actual+s.orphans >= desired:
		return change{}, step.Done(), nil
	}
	condition.Set(s.set, scalingUp(desired, actual))
	if _, ok := s.set.Annotations[clusterv1.DisableMachineCreateAnnotation]; ok {
		return change{}, step.Done(), nil
	}
	if spreads(s.set) && !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return change{}, step.Wait("the infrastructure of Cluster " + s.cluster.Name + ", which reports failure domains"), nil
	}
	reason, err := c.preflightFailure(ctx, s)
	if err != nil {
		return change{}, step.Done(), err
	}
	if reason != "" {
		condition.Set(s.set, condition.False(clusterv1.MachinesCreatedV1Beta1Condition, clusterv1.ConditionSeverityError,
			clusterv1.PreflightCheckFailedV1Beta1Reason, "%s", reason))
		s.incomplete = true
		return change{}, step.Again(preflightBackstop), nil
	}
	missing := desired - actual - s.orphans
	return change{create: min(missing, maxCreated), more: missing > maxCreated}, step.Done(), nil
}

// readLive replaces the Machines in the scope with those of the API server. It waits if the cached MachineSet or Cluster are stale.
//
// If this process created the set a moment ago, its first Machines need no list, because creating them twice is a conflict;
// Cluster and set are not read if step.Recent shows that the cached copies are up to date. Older sets may have been scaled by any
// client: they are always read.
func (c *Controller) readLive(ctx context.Context, s *scope, decision change) (step.Result, error) {
	collides := c.collides(s, decision)
	var reads []step.Read
	if !collides || !c.Recent.UpToDate(s.cluster) {
		reads = append(reads, step.Reread(s.cluster, &clusterv1.Cluster{}, nil))
	}
	if !collides || !c.Recent.UpToDate(s.set) {
		reads = append(reads, step.Reread(s.set, &clusterv1.MachineSet{}, same))
	}
	result, err := c.Latest(ctx, reads...)
	if err != nil || result.Ends() || collides {
		return result, err
	}
	own, orphans, err := list(ctx, c.Live, s.set)
	if err != nil {
		return step.Done(), err
	}
	s.machines, s.moved = split(s.set, own)
	s.orphans, s.live = len(orphans), true
	return step.Done(), nil
}

// same reports whether two versions of a MachineSet lead to the same decision.
func same(live, cached *clusterv1.MachineSet) bool {
	return live.Generation == cached.Generation && maps.Equal(live.Annotations, cached.Annotations)
}

// collides reports whether creating a Machine that already exists, but is not in the cache, is a conflict instead of a second
// Machine. That holds if all Machines of the set have the names of the first ordinals: this process created the set a moment ago,
// so that it was not moved here with Machines of other names, and has received none; it has adopted no Machines; and no Machine has been
// deleted, which would start the next generation of names. Sets that spread their Machines have to know all of them.
func (c *Controller) collides(s *scope, decision change) bool {
	if spreads(s.set) || len(decision.delete) > 0 || len(decision.move) > 0 ||
		!c.Recent.CreatedHere(s.set) || s.orphans > 0 || currentGeneration(s.set, s.machines) > 0 {
		return false
	}
	return !c.leaving(&scope{set: s.set, machines: s.machines, change: decision})
}
