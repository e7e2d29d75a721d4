package machinedeployment

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
)

// defaultHistory is how many old MachineSets are kept when the deployment does not say.
const defaultHistory = 1

// clean deletes the oldest of the old MachineSets beyond the history limit, once the rollout is complete.
// One that still has Machines stays.
func (c *Controller) clean(ctx context.Context, s *scope) (step.Result, error) {
	if !s.complete() {
		return step.Done(), nil
	}
	old := s.old()
	extra := len(old) - int(ptr.Deref(s.deployment.Spec.RevisionHistoryLimit, defaultHistory))
	var errs []error
	for _, set := range old[:max(0, extra)] {
		if empty, err := c.empty(ctx, s, set); err != nil || !empty {
			errs = append(errs, err)
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
	if s.current == nil {
		return false
	}
	desired := *s.deployment.Spec.Replicas
	counts := s.counts()
	return s.tally(s.current).Replicas == desired && counts.Replicas == desired && counts.AvailableReplicas == desired
}

// empty is whether a MachineSet has no Machines and is to have none. The garbage collector deletes what a MachineSet owns
// with it, so that is asked of the API server; and the MachineSet is deleted only as it was read.
func (c *Controller) empty(ctx context.Context, s *scope, set *clusterv1.MachineSet) (bool, error) {
	if t := s.tally(set); ptr.Deref(set.Spec.Replicas, 1) != 0 || t.Replicas+t.Leaving > 0 {
		return false, nil
	}
	machines := &metav1.PartialObjectMetadataList{}
	machines.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	if err := c.Live.List(ctx, machines, inCluster(set.Namespace, set.Spec.ClusterName)...); err != nil {
		return false, fmt.Errorf("looking for Machines of MachineSet %s: %w", set.Name, err)
	}
	for i := range machines.Items {
		if ownership.Has(&machines.Items[i], set) {
			return false, nil
		}
	}
	return true, nil
}

func (c *Controller) delete(ctx context.Context, set *clusterv1.MachineSet) error {
	if err := c.Delete(ctx, set); err != nil {
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
