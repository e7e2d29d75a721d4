package recovery

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release gives the control plane back: its controller scales up.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	now := c.Clock.Now()
	for i := range s.machines {
		if err := c.forget(ctx, &s.machines[i], s.recovery); err != nil {
			return step.Result{}, err
		}
	}
	if err := c.holder.Release(ctx, s.controlPlane, s.operation()); err != nil {
		return step.Result{}, err
	}
	s.complete(releaseAll, now, "KubeadmControlPlane %s continues", s.controlPlane.Name)
	s.recovery.Status.Phase, s.recovery.Status.CompletionTime = fleetv1.OperationPhaseCompleted, &metav1.Time{Time: now}
	s.said = verdict{reason: fleetv1.OperationCompletedReason}
	step.Event(ctx, "RecoveryCompleted", "The control plane of Cluster %s works again, with Machine %s", s.recovery.Spec.ClusterName,
		s.recovery.Spec.Survivor)
	return step.Stop(), nil
}
