package machinepool

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// remove deletes all machines, and removes the finalizer once the API server has none. Whatever it deletes was read from the API
// server: an infrastructure machine is only deleted directly if it has no Machine.
func (c *Controller[P, M]) remove(ctx context.Context, s *scope[P, M]) (step.Result, error) {
	deleting := condition.False(ReplicasReadyCondition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingV1Beta1Reason, "")
	if !controllerutil.ContainsFinalizer(s.obj, c.provider.Finalizer) {
		return step.Stop(), nil
	}
	if s.allDeleting() && len(s.members) > 0 {
		return s.waitForDeletion(deleting), nil
	}
	var err error
	if s.members, err = c.membersOf(ctx, c.Live, s.obj); err != nil {
		return step.Done().WithConditions(deleting), err
	}
	for _, m := range s.members {
		if m.Object.GetDeletionTimestamp().IsZero() && !m.deleting() {
			if err := c.delete(ctx, m, "its pool is being deleted"); err != nil {
				return step.Done().WithConditions(deleting), err
			}
		}
	}
	for _, m := range s.stranded() {
		if err := c.delete(ctx, m, "its "+c.provider.Machine.Kind+" is being deleted"); err != nil {
			return step.Done().WithConditions(deleting), err
		}
	}
	if len(s.members) > 0 {
		return s.waitForDeletion(deleting), nil
	}
	controllerutil.RemoveFinalizer(s.obj, c.provider.Finalizer)
	return step.Done().WithConditions(deleting), nil
}

func (s *scope[P, M]) waitForDeletion(deleting clusterv1.Condition) step.Result {
	return step.Wait(fmt.Sprintf("the deletion of %d %ss", len(s.members), s.provider.Machine.Kind)).WithConditions(deleting)
}

// allDeleting reports whether all machines are being deleted, with their Machines.
func (s *scope[P, M]) allDeleting() bool {
	for _, m := range s.members {
		if !m.deleting() {
			return false
		}
	}
	return len(s.stranded()) == 0
}
