package restore

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release gives the control plane back, and deletes what was stored for it.
func (c *Controller) release(ctx context.Context, s *scope) (operation.Outcome, error) {
	if err := c.holder.Release(ctx, client.ObjectKeyFromObject(s.kcp), heldBy(s.restore, fleetv1.OperationModeRestore)); err != nil {
		return operation.Outcome{}, err
	}
	if err := c.dropData(ctx, s.restore); err != nil {
		return operation.Outcome{}, err
	}
	r := s.restore
	s.Succeed(strings.Join(r.Status.Warnings, "\n"))
	step.Event(ctx, "Restored", "Restored the control plane of Cluster %s from revision %d", r.Spec.ClusterName, r.Status.Backup.Revision)
	return operation.Done("KubeadmControlPlane " + s.kcp.Name + " creates the other Machines"), nil
}
