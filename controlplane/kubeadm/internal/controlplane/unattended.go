package controlplane

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watch"
)

// unattended removes our hook from Machines that are being deleted and that no control plane looks after any more: its
// object was removed by force, or gave its Machines up. Nobody else would, and the Machines would stay for ever.
type unattended struct {
	reader client.Reader
	// live reads past the cache, which may not show a control plane that was just created.
	live client.Reader
}

// setupUnattended adds the controller to the manager.
func setupUnattended(ctx context.Context, mgr ctrl.Manager, o Options) error {
	u := &unattended{reader: mgr.GetClient(), live: mgr.GetAPIReader()}
	declared := u.declared()
	declared.Concurrency = o.Workers
	_, err := declared.Add(ctx, mgr, step.OutsideOf(mgr, "kubeadm-control-plane-controller", o.Filter))
	return err
}

// declared is how the hook is removed.
func (u *unattended) declared() step.Controller[*clusterv1.Machine, *clusterv1.Machine] {
	return step.Controller[*clusterv1.Machine, *clusterv1.Machine]{
		Name: "kubeadmcontrolplane-unattended",
		New:  func() *clusterv1.Machine { return &clusterv1.Machine{} },
		Events: predicate.NewPredicateFuncs(func(obj client.Object) bool {
			m, ok := obj.(*clusterv1.Machine)
			return ok && m.DeletionTimestamp != nil && hooked(m)
		}),
		Watches:  []step.Watch{step.Mapped(&controlplanev1.KubeadmControlPlane{}, u.ofControlPlane, watch.Deleted())},
		Paused:   ownership.PausedByCluster[*clusterv1.Machine](u.reader),
		Scope:    step.Self[*clusterv1.Machine],
		Deletion: []step.Step[*clusterv1.Machine]{step.When(hooked, step.Do("release", u.release))},
	}
}

// release removes the hook of a Machine whose control plane is gone.
func (u *unattended) release(ctx context.Context, m *clusterv1.Machine) (step.Result, error) {
	gone, err := u.gone(ctx, m)
	if err != nil || !gone {
		return step.Stop(), err
	}
	delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation)
	step.Warning(ctx, "ControlPlaneGone", "No KubeadmControlPlane looks after the Machine: it goes without its etcd member leaving")
	return step.Stop(), nil
}

// gone reports whether there is no control plane that would remove the hook.
func (u *unattended) gone(ctx context.Context, m *clusterv1.Machine) (bool, error) {
	controller := metav1.GetControllerOf(m)
	if controller == nil {
		return true, nil
	}
	if controller.Kind != "KubeadmControlPlane" || groupOf(controller.APIVersion) != controlplanev1.GroupVersion.Group {
		return false, nil
	}
	key := types.NamespacedName{Namespace: m.Namespace, Name: controller.Name}
	for _, reader := range []client.Reader{u.reader, u.live} {
		kcp := &controlplanev1.KubeadmControlPlane{}
		switch err := reader.Get(ctx, key, kcp); {
		case err == nil && kcp.UID == controller.UID:
			return false, nil
		case client.IgnoreNotFound(err) != nil:
			return false, fmt.Errorf("reading KubeadmControlPlane %s: %w", key, err)
		case apierrors.IsNotFound(err):
		}
	}
	return true, nil
}

// ofControlPlane names the Machines that a control plane leaves behind.
func (u *unattended) ofControlPlane(ctx context.Context, obj client.Object) []reconcile.Request {
	machines := &clusterv1.MachineList{}
	err := u.reader.List(ctx, machines, client.InNamespace(obj.GetNamespace()), client.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range machines.Items {
		m := &machines.Items[i]
		if controller := metav1.GetControllerOf(m); hooked(m) && (controller == nil || controller.UID == obj.GetUID()) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		}
	}
	return requests
}
