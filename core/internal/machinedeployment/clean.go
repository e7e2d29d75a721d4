package machinedeployment

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/step"
)

// defaultHistory is how many old MachineSets are kept when the deployment does not say.
const defaultHistory = 1

// clean deletes the oldest of the old MachineSets beyond the history limit, once the rollout is complete.
// One that still has Machines, or may have, stays.
func (c *Controller) clean(ctx context.Context, s *scope) (step.Result, error) {
	if !s.complete() {
		return step.Done(), nil
	}
	old := s.old()
	extra := len(old) - int(ptr.Deref(s.deployment.Spec.RevisionHistoryLimit, defaultHistory))
	var errs []error
	for _, set := range old[:max(0, extra)] {
		if !empty(set) {
			continue
		}
		if err := c.delete(ctx, set); err != nil {
			errs = append(errs, err)
			continue
		}
		s.forget(set)
	}
	return step.Done(), errors.Join(errs...)
}

// complete is whether all Machines are of the current template, and available.
func (s *scope) complete() bool {
	if s.current == nil || !settled(s.current) {
		return false
	}
	desired := *s.deployment.Spec.Replicas
	counts := s.counts()
	return s.current.Status.Replicas == desired && counts.Replicas == desired && counts.AvailableReplicas == desired
}

func empty(set *clusterv1.MachineSet) bool {
	return ptr.Deref(set.Spec.Replicas, 1) == 0 && set.Status.Replicas == 0 && settled(set)
}

// settled is whether a MachineSet's status is about its spec as it is.
func settled(set *clusterv1.MachineSet) bool {
	return set.Status.ObservedGeneration >= set.Generation
}

func (c *Controller) delete(ctx context.Context, set *clusterv1.MachineSet) error {
	err := c.Client.Delete(ctx, set, client.Preconditions{UID: ptr.To(set.UID), ResourceVersion: ptr.To(set.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		warn(ctx, err, "FailedDelete", "Failed to delete MachineSet %q: %v", set.Name, err)
		return fmt.Errorf("deleting MachineSet %s: %w", set.Name, err)
	}
	step.Event(ctx, "SuccessfulDelete", "Deleted MachineSet %q", set.Name)
	return nil
}

func (s *scope) forget(gone *clusterv1.MachineSet) {
	var kept []*clusterv1.MachineSet
	for _, set := range s.sets {
		if set != gone {
			kept = append(kept, set)
		}
	}
	s.sets = kept
}
