package controlplane

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// setupOrphanedMachines adds the controller of orphaned Machines to the manager.
func setupOrphanedMachines(ctx context.Context, mgr ctrl.Manager, clients step.Clients, concurrency int) error {
	declared := (&orphanedMachines{reader: mgr.GetClient(), live: mgr.GetAPIReader()}).declared()
	declared.Concurrency = concurrency
	return step.Add(ctx, mgr, clients, declared)
}

// declared declares the controller.
func (c *orphanedMachines) declared() step.Controller[*clusterv1.Machine, *clusterv1.Machine] {
	return step.Controller[*clusterv1.Machine, *clusterv1.Machine]{
		Name: "kubeadmcontrolplane-orphaned-machine",
		New:  func() *clusterv1.Machine { return &clusterv1.Machine{} },
		Events: predicate.NewPredicateFuncs(func(obj client.Object) bool {
			m, ok := obj.(*clusterv1.Machine)
			return ok && m.DeletionTimestamp != nil && membership.HasHook(m)
		}),
		Watches:  []step.Watch{step.Mapped(&controlplanev1.KubeadmControlPlane{}, c.ofControlPlane, watch.Deleted())},
		Paused:   ownership.PausedByCluster[*clusterv1.Machine](c.reader),
		Scope:    step.Self[*clusterv1.Machine],
		Deletion: []step.Step[*clusterv1.Machine]{step.When(membership.HasHook, step.Do("remove-hook", c.removeHook))},
	}
}

// ofControlPlane returns requests for the Machines of a deleted control plane.
func (c *orphanedMachines) ofControlPlane(ctx context.Context, obj client.Object) []reconcile.Request {
	machines := &clusterv1.MachineList{}
	return watch.RequestsFor(ctx, c.reader, machines, func(m *clusterv1.Machine) bool {
		controller := metav1.GetControllerOf(m)
		return membership.HasHook(m) && (controller == nil || controller.UID == obj.GetUID())
	}, client.InNamespace(obj.GetNamespace()), client.HasLabels{clusterv1.MachineControlPlaneLabel})
}
