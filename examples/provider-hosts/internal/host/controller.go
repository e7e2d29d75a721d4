package host

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Controller reconciles Hosts.
type Controller struct{ step.Clients }

// Declared returns the controller.
func (c *Controller) Declared() step.Controller[*hostsv1.Host, *hostsv1.Host] {
	phase := []step.Step[*hostsv1.Host]{step.Do("phase", c.phase).Sets(hostsv1.HostAvailableCondition)}
	return step.Controller[*hostsv1.Host, *hostsv1.Host]{
		Name:     "host",
		New:      func() *hostsv1.Host { return &hostsv1.Host{} },
		Watches:  []step.Watch{step.Mapped(&hostsv1.HostMachine{}, ofMachine, predicate.Or(watch.Created(), watch.Deleted()))},
		Scope:    step.Self[*hostsv1.Host],
		Steps:    phase,
		Deletion: phase,
	}
}

func ofMachine(_ context.Context, obj client.Object) []reconcile.Request {
	if m, ok := obj.(*hostsv1.HostMachine); ok && m.Spec.Host != nil {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.Host.Name}}}
	}
	return nil
}
