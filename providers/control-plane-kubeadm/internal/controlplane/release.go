package controlplane

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release removes the finalizer, after a live check that there are no Machines of the control plane and no workers. It also
// removes our hook from orphaned Machines, and drops the memory of the control plane.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	all, err := c.confirm().ListMachines(ctx, s.ControlPlane)
	if err != nil {
		return step.Done(), err
	}
	var errs []error
	left := 0
	for i := range all {
		m := &all[i]
		_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
		switch controller := metav1.GetControllerOf(m); {
		case !controlPlane || controller != nil && controller.UID == s.KCP.UID:
			left++
		case controller == nil:
			errs = append(errs, membership.RemoveHook(ctx, c.Clients, m))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return step.Done(), err
	}
	pools, err := c.livePools(ctx, s.ControlPlane)
	if err != nil {
		return step.Done(), err
	}
	if left += pools; left > 0 {
		return snapshot.Stale("the remaining Machines and MachinePools of Cluster " + s.Key().String()).Wait(), nil
	}
	controllerutil.RemoveFinalizer(s.KCP, controlplanev1.KubeadmControlPlaneFinalizer)
	c.connector.Forget(s.KCP.UID)
	c.credentials.Forget(s.KCP.UID)
	c.members.Forget(s.KCP.UID)
	c.maintained.Delete(s.KCP.UID)
	return step.Stop(), nil
}
