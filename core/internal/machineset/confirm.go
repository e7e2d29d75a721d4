package machineset

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/step"
)

// staleBackstop is how long until the API server is asked again while the cache is behind it. Usually an event comes first.
const staleBackstop = 10 * time.Second

// confirm decides how the number of Machines changes. The cache says whether it has to. If so, Cluster, MachineSet and
// Machines are read from the API server, and the decision is made on those: a cache that lacks Machines, our own
// deletions or a new size would have us create or delete too many. That is three reads each time Machines are made or
// deleted, and none otherwise.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	if s.set.Spec.Replicas == nil {
		s.report(step.Terminal(fmt.Errorf("MachineSet %s has no spec.replicas: its webhook defaults it, write the object again", s.set.Name)))
		return step.Done(), nil
	}
	decision, result, err := c.decide(ctx, s)
	if err != nil || decision.none() {
		return result, err
	}
	current, err := c.look(ctx, s)
	if err != nil {
		return step.Done(), err
	}
	if !current {
		return step.Again(staleBackstop), nil
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
// what the cache says: then nothing can be decided before the cache has caught up.
func (c *Controller) look(ctx context.Context, s *scope) (current bool, err error) {
	set, cluster := &clusterv1.MachineSet{}, &clusterv1.Cluster{}
	for _, r := range []struct {
		cached, live client.Object
	}{{s.cluster, cluster}, {s.set, set}} {
		err := c.Live.Get(ctx, client.ObjectKeyFromObject(r.cached), r.live)
		if apierrors.IsNotFound(err) || err == nil && (r.live.GetUID() != r.cached.GetUID() || !r.live.GetDeletionTimestamp().Equal(r.cached.GetDeletionTimestamp())) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading %T %s from the API server: %w", r.live, r.cached.GetName(), err)
		}
	}
	if cluster.Spec.Paused || set.Generation != s.set.Generation || !maps.Equal(set.Annotations, s.set.Annotations) {
		return false, nil
	}
	own, orphans, err := list(ctx, c.Live, s.set)
	if err != nil {
		return false, err
	}
	s.machines, s.orphans = own, len(orphans)
	return true, nil
}
