package machinepool

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// remove deletes all machines, and removes the finalizer once the API server has none. Whatever it deletes was read from the API
// server: a DockerMachine is only deleted directly if it has no Machine.
func (c *Controller) remove(ctx context.Context, s *scope) (step.Result, error) {
	deleting := condition.False(dockerv1.ReplicasReadyCondition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingReason, "")
	if !controllerutil.ContainsFinalizer(s.obj, dockerv1.MachinePoolFinalizer) {
		return step.Stop(), nil
	}
	if s.allDeleting() && len(s.members) > 0 {
		return s.waitForDeletion(deleting), nil
	}
	var err error
	if s.members, err = membersOf(ctx, c.Live, s.obj); err != nil {
		return step.Done().WithConditions(deleting), err
	}
	for _, m := range s.members {
		if m.obj.DeletionTimestamp.IsZero() && !m.deleting() {
			if err := c.delete(ctx, m, "its pool is being deleted"); err != nil {
				return step.Done().WithConditions(deleting), err
			}
		}
	}
	for _, m := range s.stranded() {
		if err := c.delete(ctx, m, "its DockerMachine is being deleted"); err != nil {
			return step.Done().WithConditions(deleting), err
		}
	}
	if len(s.members) > 0 {
		return s.waitForDeletion(deleting), nil
	}
	controllerutil.RemoveFinalizer(s.obj, dockerv1.MachinePoolFinalizer)
	return step.Done().WithConditions(deleting), nil
}

func (s *scope) waitForDeletion(deleting clusterv1.Condition) step.Result {
	return step.Wait(fmt.Sprintf("the deletion of %d DockerMachines", len(s.members))).WithConditions(deleting)
}

// allDeleting reports whether all machines are being deleted, with their Machines.
func (s *scope) allDeleting() bool {
	for _, m := range s.members {
		if !m.deleting() {
			return false
		}
	}
	return len(s.stranded()) == 0
}
