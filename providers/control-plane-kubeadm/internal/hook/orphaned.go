package hook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// orphaned removes our hook from Machines that are being deleted and have no control plane: it was removed by force, or the
// Machine was orphaned. No other controller would remove the hook, and the Machine would never be deleted.
type orphaned struct {
	reader client.Reader
	// live reads past the cache, which may not show a new control plane yet.
	live client.Reader
}

// SetupOrphaned adds the controller of orphaned Machines to the manager.
func SetupOrphaned(ctx context.Context, mgr ctrl.Manager, outside step.Outside, workers int) error {
	declared := (&orphaned{reader: mgr.GetClient(), live: mgr.GetAPIReader()}).declared()
	declared.Concurrency = workers
	return step.Add(ctx, mgr, outside, declared)
}

// declared declares the controller.
func (o *orphaned) declared() step.Controller[*clusterv1.Machine, *clusterv1.Machine] {
	return step.Controller[*clusterv1.Machine, *clusterv1.Machine]{
		Name: "kubeadmcontrolplane-orphaned-machine",
		New:  func() *clusterv1.Machine { return &clusterv1.Machine{} },
		Events: predicate.NewPredicateFuncs(func(obj client.Object) bool {
			m, ok := obj.(*clusterv1.Machine)
			return ok && m.DeletionTimestamp != nil && IsSet(m)
		}),
		Watches:  []step.Watch{step.Mapped(&controlplanev1.KubeadmControlPlane{}, o.ofControlPlane, watch.Deleted())},
		Paused:   ownership.PausedByCluster[*clusterv1.Machine](o.reader),
		Scope:    step.Self[*clusterv1.Machine],
		Deletion: []step.Step[*clusterv1.Machine]{step.When(IsSet, step.Do("remove-hook", o.remove))},
	}
}

// remove removes the hook from a Machine without a control plane.
func (o *orphaned) remove(ctx context.Context, m *clusterv1.Machine) (step.Result, error) {
	gone, err := o.controlPlaneGone(ctx, m)
	if err != nil || !gone {
		return step.Stop(), err
	}
	delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation)
	step.Warning(ctx, "ControlPlaneGone", "The KubeadmControlPlane of the Machine does not exist any more: deleting the Machine without removing its etcd member")
	return step.Stop(), nil
}

// controlPlaneGone reports whether the Machine has no control plane that would remove the hook.
func (o *orphaned) controlPlaneGone(ctx context.Context, m *clusterv1.Machine) (bool, error) {
	controller := metav1.GetControllerOf(m)
	if controller == nil {
		return true, nil
	}
	ours := schema.GroupKind{Group: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane"}
	if schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() != ours {
		return false, nil
	}
	key := types.NamespacedName{Namespace: m.Namespace, Name: controller.Name}
	for _, reader := range []client.Reader{o.reader, o.live} {
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

// ofControlPlane returns requests for the Machines of a deleted control plane.
func (o *orphaned) ofControlPlane(ctx context.Context, obj client.Object) []reconcile.Request {
	machines := &clusterv1.MachineList{}
	return watch.RequestsFor(ctx, o.reader, machines, func(m *clusterv1.Machine) bool {
		controller := metav1.GetControllerOf(m)
		return IsSet(m) && (controller == nil || controller.UID == obj.GetUID())
	}, client.InNamespace(obj.GetNamespace()), client.HasLabels{clusterv1.MachineControlPlaneLabel})
}
