package machinepool

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteMachines deletes Machines whose infrastructure machine no longer exists, and those that are marked for remediation, for which
// the provider creates others.
func (c *Controller) deleteMachines(ctx context.Context, s *scope) (step.Result, error) {
	exists := map[string]bool{}
	for _, infra := range s.infraMachines {
		exists[infra.GetName()] = true
	}
	var unneeded []*clusterv1.Machine
	for _, m := range s.machines {
		marked := condition.IsFalse(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
		switch {
		case !metav1.IsControlledBy(m, s.pool):
		case !m.DeletionTimestamp.IsZero():
			if marked {
				s.report(c.SetReports(ctx, m, []clusterv1.Condition{condition.True(clusterv1.MachineOwnerRemediatedV1Beta1Condition)},
					report.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineOwnerRemediatedMachineDeletingReason,
						"Machine is deleting")))
			}
		case marked:
			unneeded = append(unneeded, m)
		case !exists[m.Spec.InfrastructureRef.Name]:
			gone, err := c.infraMachineGone(ctx, m)
			s.report(err)
			if gone {
				unneeded = append(unneeded, m)
			}
		}
	}
	if len(unneeded) == 0 {
		return step.Done(), nil
	}
	if result, err := c.latest(ctx, s); err != nil || result.Ends() {
		return result, err
	}
	for _, m := range unneeded {
		s.report(c.deleteMachine(ctx, m))
	}
	return step.Done(), nil
}

// infraMachineGone reports whether the infrastructure machine of a Machine exists neither in the cache nor in the API server.
func (c *Controller) infraMachineGone(ctx context.Context, m *clusterv1.Machine) (bool, error) {
	for _, from := range []external.Reader{c.follow.Reader, c.live()} {
		if _, err := from.Get(ctx, &m.Spec.InfrastructureRef, m.Namespace); !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	return true, nil
}

// deleteMachine deletes a Machine if it is unchanged since it was read: otherwise the reason may be outdated.
func (c *Controller) deleteMachine(ctx context.Context, m *clusterv1.Machine) error {
	if err := c.Delete(ctx, m); err != nil {
		if !step.IsStale(err) {
			step.Warning(ctx, "FailedDelete", "Failed to delete Machine %q: %v", m.Name, err)
		}
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	step.Event(ctx, "SuccessfulDelete", "Deleted Machine %q", m.Name)
	return nil
}
