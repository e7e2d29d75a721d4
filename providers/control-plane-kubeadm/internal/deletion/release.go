package deletion

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Release removes the finalizer, after a live check that there are no Machines of the control plane and no workers. It also
// removes our hook from orphaned Machines.
func (d Deleter) Release(ctx context.Context, cp *snapshot.ControlPlane) (step.Result, error) {
	all, err := d.Confirm.ListMachines(ctx, cp)
	if err != nil {
		return step.Result{}, err
	}
	var errs []error
	left := 0
	for i := range all {
		m := &all[i]
		_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
		switch controller := metav1.GetControllerOf(m); {
		case !controlPlane || controller != nil && controller.UID == cp.KCP.UID:
			left++
		case controller == nil:
			errs = append(errs, membership.RemoveHook(ctx, d.Outside, m))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return step.Result{}, err
	}
	pools, err := d.livePools(ctx, cp)
	if err != nil {
		return step.Result{}, err
	}
	if left += pools; left > 0 {
		return snapshot.Stale("the remaining Machines and MachinePools of Cluster " + cp.Key().String()).Wait(), nil
	}
	controllerutil.RemoveFinalizer(cp.KCP, controlplanev1.KubeadmControlPlaneFinalizer)
	return step.Stop(), nil
}
