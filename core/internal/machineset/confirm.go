package machineset

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// staleBackstop is how long until the API server is asked again while the cache is behind it. Usually an event comes first.
const staleBackstop = 10 * time.Second

// confirm decides how the number of Machines changes. The cache says whether it has to. If so, Cluster, MachineSet and
// Machines are read from the API server, and the decision is made on those: a cache that lacks Machines, our own
// deletions or a new size would have us create or delete too many. That is three reads each time Machines are made or
// deleted, and none otherwise.
//
// The first Machines of a MachineSet cost fewer, usually none: see look.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	if s.set.Spec.Replicas == nil {
		s.report(step.Terminal(fmt.Errorf("MachineSet %s has no spec.replicas: its webhook defaults it, write the object again", s.set.Name)))
		return step.Done(), nil
	}
	decision, result, err := c.decide(ctx, s)
	if err != nil || decision.none() {
		return result, err
	}
	current, err := c.look(ctx, s, decision)
	if err != nil {
		return step.Done(), err
	}
	if !current {
		return step.WaitAtMost(staleBackstop, "the cache to show the MachineSet and its Cluster as they are"), nil
	}
	s.change, result, err = c.decide(ctx, s)
	return result, err
}

func (c change) none() bool { return c.create == 0 && len(c.delete) == 0 }

// decide is how the number of Machines has to change by what the scope has. The result comes back when Machines are missing
// that cannot be made now.
func (c *Controller) decide(ctx context.Context, s *scope) (change, step.Result, error) {
	desired, have := int(*s.set.Spec.Replicas), len(s.machines)
	switch {
	case have > desired:
		var out change
		for _, m := range toDelete(s.machines, s.set.Spec.DeletePolicy, have-desired, c.Clock.Now()) {
			if m.DeletionTimestamp.IsZero() {
				out.delete = append(out.delete, m)
			}
		}
		return out, step.Done(), nil
	case have+s.orphans >= desired:
		return change{}, step.Done(), nil
	}
	condition.Set(s.set, scalingUp(desired, have))
	if _, ok := s.set.Annotations[clusterv1.DisableMachineCreateAnnotation]; ok {
		return change{}, step.Done(), nil
	}
	reason, err := c.preflightFailure(ctx, s)
	if err != nil {
		return change{}, step.Done(), err
	}
	if reason != "" {
		condition.Set(s.set, condition.False(clusterv1.MachinesCreatedCondition, clusterv1.ConditionSeverityError, clusterv1.PreflightCheckFailedReason, "%s", reason))
		s.incomplete = true
		return change{}, step.Again(preflightBackstop), nil
	}
	return change{create: desired - have - s.orphans}, step.Done(), nil
}

// look replaces the Machines of the scope by those that the API server has, unless the MachineSet or its Cluster are not
// what the cache says: then no step may act before the cache has caught up.
//
// The first Machines of a set that this process made a moment ago need no list, because creating them twice collides, and
// Cluster and set are not read if they are known to be as they were a moment ago, see step.Recent. Sets that have been there
// for longer may have been resized by anybody: they are always read.
func (c *Controller) look(ctx context.Context, s *scope, decision change) (current bool, err error) {
	collides := c.collides(s, decision)
	cluster := &clusterv1.Cluster{}
	if !collides || !c.Recent.Shown(s.cluster) {
		if found, err := c.find(ctx, s.cluster, cluster); !found || cluster.Spec.Paused || err != nil {
			return false, err
		}
	}
	set := &clusterv1.MachineSet{}
	if !collides || !c.Recent.Shown(s.set) {
		found, err := c.find(ctx, s.set, set)
		if !found || err != nil || set.Generation != s.set.Generation || !maps.Equal(set.Annotations, s.set.Annotations) {
			return false, err
		}
	}
	if collides {
		return true, nil
	}
	own, orphans, err := list(ctx, c.Live, s.set)
	if err != nil {
		return false, err
	}
	s.machines, s.orphans = own, len(orphans)
	return true, nil
}

// find reads what the cache shows from the API server. It is not found if that is another object, or is being deleted.
func (c *Controller) find(ctx context.Context, cached, live client.Object) (bool, error) {
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(cached), live)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s from the API server: %w", live, cached.GetName(), err)
	}
	return live.GetUID() == cached.GetUID() && live.GetDeletionTimestamp().Equal(cached.GetDeletionTimestamp()), nil
}

// collides is whether creating a Machine that exists already, and that the cache lacks, leads to no second one. That is so
// if all Machines of the set have the names of the first ordinals: this process made the set a moment ago, so it was not
// moved here with Machines that were named elsewhere, it has adopted none, and none has left, after which others would get
// names of the next generation.
func (c *Controller) collides(s *scope, decision change) bool {
	if len(decision.delete) > 0 || !c.Recent.Made(s.set) || s.orphans > 0 || currentGeneration(s.set, s.machines) > 0 {
		return false
	}
	return !c.leaving(&scope{set: s.set, machines: s.machines, change: decision})
}
