package machinedeployment

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// defaultHistory is the number of old MachineSets to keep, unless a client sets another one in v1beta1.
const defaultHistory = 1

// clean deletes the oldest MachineSets beyond the history limit, once the rollout is complete. It keeps those that still have
// Machines.
func (c *Controller) clean(ctx context.Context, s *scope) (step.Result, error) {
	if !s.complete() {
		return step.Done(), nil
	}
	limit, err := history(ctx, s.deployment)
	if err != nil {
		return step.Done(), err
	}
	old := s.old()
	extra := len(old) - limit
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
		s.remove(set)
	}
	return step.Done(), errors.Join(errs...)
}

// history returns the number of old MachineSets to keep, which is revisionHistoryLimit of v1beta1.
func history(ctx context.Context, md *clusterv1.MachineDeployment) (int, error) {
	older := &clusterv1beta1.MachineDeployment{}
	if _, err := conversion.Older(ctx, md, older, "revisionHistoryLimit"); err != nil {
		return 0, fmt.Errorf("reading revisionHistoryLimit of MachineDeployment %s: %w", md.Name, err)
	}
	// A negative limit was admitted once; it counts as zero.
	return int(max(0, ptr.Deref(older.Spec.RevisionHistoryLimit, defaultHistory))), nil
}

// complete reports whether all Machines have the current template and are available.
func (s *scope) complete() bool {
	if s.current == nil {
		return false
	}
	desired := s.replicas()
	counts := s.counts()
	return s.tally(s.current).Replicas == desired && counts.replicas == desired && counts.available == desired
}

// empty reports whether a MachineSet has no Machines and zero replicas. The garbage collector deletes the Machines of a deleted
// MachineSet, so empty reads from the API server, and the deletion has the resource version as precondition.
func (c *Controller) empty(ctx context.Context, s *scope, set *clusterv1.MachineSet) (bool, error) {
	if t := s.tally(set); ptr.Deref(set.Spec.Replicas, 1) != 0 || t.Replicas+t.Deleting+t.Moved > 0 {
		return false, nil
	}
	machines := &metav1.PartialObjectMetadataList{}
	machines.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	if err := c.Live.List(ctx, machines, ownership.InCluster(set.Namespace, set.Spec.ClusterName)); err != nil {
		return false, fmt.Errorf("listing the Machines of MachineSet %s: %w", set.Name, err)
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

func (s *scope) remove(deleted *clusterv1.MachineSet) {
	var kept []*clusterv1.MachineSet
	for _, set := range s.sets {
		if set != deleted {
			kept = append(kept, set)
		}
	}
	s.sets = kept
}
