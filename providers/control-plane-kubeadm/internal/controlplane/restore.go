package controlplane

import (
	"context"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// restore creates the first Machine of a control plane that an operation restores, if it has no Machine, and completes it after an
// interruption. That there is none is checked against the API server: two Machines would found two clusters at the same address.
func (c *Controller) restore(ctx context.Context, s *scope) (step.Result, error) {
	switch {
	case s.operation == nil || s.operation.Mode != fleetv1.OperationModeRestore:
		return lossHeld(s), nil
	case len(s.Machines) > 0:
		return step.Done().KeepCondition(), c.machines.CompleteRestored(ctx, s.ControlPlane)
	case !s.StackedEtcd():
		return step.Wait("a control plane with its own etcd: there is nothing to restore with external etcd").
			Because(controlplanev1.MachineGenerationFailedV1Beta1Reason), nil
	case len(s.Orphans) > 0:
		return step.Wait("Machine " + s.Orphans[0].Name + ", which has no controller, to be deleted").
			Because(controlplanev1.MachineGenerationFailedV1Beta1Reason), nil
	}
	if stale, err := c.confirm().Decision(ctx, s.ControlPlane); stale != "" || err != nil {
		return stale.Wait().KeepCondition(), err
	}
	if err := c.machines.Restore(ctx, s.ControlPlane, s.action.FailureDomain, *s.operation); err != nil {
		return step.Done(), err
	}
	return step.Wait("the new Machine to start with the data of " + s.operation.Kind + " " + s.operation.Name).
		WithConditions(condition.True(controlplanev1.MachinesCreatedV1Beta1Condition)), nil
}
