package host

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// phase reports whether the Host can be claimed. A Host that is not claimed needs no finalizer.
func (c *Controller) phase(ctx context.Context, host *hostsv1.Host) (step.Result, error) {
	severity := clusterv1.ConditionSeverityInfo
	var message string
	held, err := c.held(ctx, host)
	switch claim := host.Spec.Claim; {
	case err != nil:
		return step.Done(), err
	case held:
		host.Status.Phase, message = "Claimed", "HostMachine "+claim.Machine+" has claimed the Host"
	case claim != nil:
		host.Status.Phase, severity = "Orphaned", clusterv1.ConditionSeverityWarning
		message = "HostMachine " + claim.Machine + " is gone and did not release the Host: reset it, then remove spec.claim"
	case host.Spec.Unschedulable:
		host.Status.Phase, message = "Unschedulable", "spec.unschedulable is set"
	default:
		host.Status.Phase = "Available"
	}
	if host.Spec.Claim == nil {
		controllerutil.RemoveFinalizer(host, hostsv1.HostFinalizer)
	}
	if message == "" {
		return step.Done(), nil
	}
	return step.Done().WithConditions(condition.False(hostsv1.HostAvailableCondition, severity, host.Status.Phase, "%s", message)), nil
}

// held reports whether the HostMachine exists that has claimed the Host.
func (c *Controller) held(ctx context.Context, host *hostsv1.Host) (bool, error) {
	if host.Spec.Claim == nil {
		return false, nil
	}
	for _, from := range []client.Reader{c.Client, c.Live} { // the cache may not have it yet
		m := &hostsv1.HostMachine{}
		err := from.Get(ctx, client.ObjectKey{Namespace: host.Namespace, Name: host.Spec.Claim.Machine}, m)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading HostMachine %s: %w", host.Spec.Claim.Machine, err)
		}
		if err == nil && host.ClaimedBy(m) {
			return true, nil
		}
	}
	return false, nil
}
