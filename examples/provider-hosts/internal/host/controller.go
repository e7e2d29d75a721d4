package host

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
	"sigs.k8s.io/cluster-api/provider/watch"
)

// Controller reconciles Hosts.
type Controller struct{ step.Outside }

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, filter watch.Filter) error {
	c := &Controller{step.OutsideOf(mgr, "host-controller", filter)}
	_, err := c.Declared().Add(ctx, mgr, c.Outside)
	return err
}

// Declared returns the controller.
func (c *Controller) Declared() step.Controller[*hostsv1.Host, *hostsv1.Host] {
	phase := []step.Step[*hostsv1.Host]{step.Do("phase", c.phase).States(hostsv1.HostAvailableCondition)}
	return step.Controller[*hostsv1.Host, *hostsv1.Host]{
		Name:     "host",
		New:      func() *hostsv1.Host { return &hostsv1.Host{} },
		Watches:  []step.Watch{step.Mapped(&hostsv1.HostMachine{}, ofMachine, watch.Deleted())},
		Scope:    step.Self[*hostsv1.Host],
		Steps:    phase,
		Deletion: phase,
	}
}

func (c *Controller) phase(ctx context.Context, host *hostsv1.Host) (step.Result, error) {
	claim := host.Spec.Claim
	unavailable := func(phase string, severity clusterv1.ConditionSeverity, format string, args ...any) (step.Result, error) {
		host.Status.Phase = phase
		return step.Done().Stating(condition.False(hostsv1.HostAvailableCondition, severity, phase, format, args...)), nil
	}
	switch {
	case claim == nil && host.Spec.Unschedulable:
		return unavailable("Unschedulable", clusterv1.ConditionSeverityInfo, "spec.unschedulable is set")
	case claim == nil:
		host.Status.Phase = "Available"
		return step.Done(), nil
	}
	key := client.ObjectKey{Namespace: host.Namespace, Name: claim.Machine}
	err := c.Client.Get(ctx, key, &hostsv1.HostMachine{})
	if apierrors.IsNotFound(err) {
		err = c.Live.Get(ctx, key, &hostsv1.HostMachine{}) // the cache may not have it yet
	}
	if apierrors.IsNotFound(err) {
		return unavailable("Orphaned", clusterv1.ConditionSeverityWarning,
			"HostMachine %s is gone and did not release the Host: reset it, then remove spec.claim", claim.Machine)
	}
	if err != nil {
		return step.Done(), fmt.Errorf("reading HostMachine %s: %w", claim.Machine, err)
	}
	return unavailable("Claimed", clusterv1.ConditionSeverityInfo, "HostMachine %s has claimed the Host", claim.Machine)
}

func ofMachine(_ context.Context, obj client.Object) []reconcile.Request {
	if m, ok := obj.(*hostsv1.HostMachine); ok && m.Spec.Host != nil {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.Host.Name}}}
	}
	return nil
}
