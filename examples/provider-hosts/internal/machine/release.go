package machine

import (
	"cmp"
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/ssh"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release resets what the HostMachine has claimed, one Host unless two managers claimed at the same time, and removes the claim.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	for _, from := range []client.Reader{c.Client, c.Live} { // the cache saves requests while a reset runs; nothing may be left in the end
		list := &hostsv1.HostList{}
		if err := from.List(ctx, list, client.InNamespace(s.obj.Namespace)); err != nil {
			return step.Done(), fmt.Errorf("listing Hosts: %w", err)
		}
		for i := range list.Items {
			if host := &list.Items[i]; host.ClaimedBy(s.obj) {
				if result, err := c.free(ctx, s.obj, host); err != nil || result.Ends() {
					return result, err
				}
			}
		}
	}
	controllerutil.RemoveFinalizer(s.obj, hostsv1.HostMachineFinalizer)
	return step.Stop(), nil
}

// free removes the claim of a Host that is reset. One that cannot be reset becomes unschedulable.
func (c *Controller) free(ctx context.Context, m *hostsv1.HostMachine, host *hostsv1.Host) (step.Result, error) {
	clean := false
	if _, abandoned := m.Annotations[hostsv1.AbandonAnnotation]; !abandoned {
		answer, err := c.run(ctx, host, "reset", map[string]string{"command": cmp.Or(m.Spec.ResetCommand, ssh.KubeadmReset)}, nil)
		if err != nil {
			return step.Done(), err
		}
		if answer == "running" || answer == "failed" {
			return resetting(m, host, answer), nil
		}
		clean = answer == "reset" || answer == "none" // else the Host has state of another claim
	}
	err := c.Patch(ctx, host, func() {
		host.Spec.Claim = nil
		host.Spec.Unschedulable = host.Spec.Unschedulable || !clean
		controllerutil.RemoveFinalizer(host, hostsv1.HostFinalizer)
	}, step.IfUnchanged)
	if client.IgnoreNotFound(err) != nil {
		return step.Done(), fmt.Errorf("releasing Host %s: %w", host.Name, err)
	}
	step.Event(ctx, "HostReleased", "Released Host %s", host.Name)
	return step.Done(), nil
}

// resetting waits until the reset command succeeds. If it failed, the condition says so while it is tried again.
func resetting(m *hostsv1.HostMachine, host *hostsv1.Host, answer string) step.Result {
	if answer == "failed" {
		return step.WaitAtMost(retryInterval, "Host "+host.Name+" to be reset").WithConditions(condition.False(hostsv1.HostReleasedCondition,
			clusterv1.ConditionSeverityWarning, hostsv1.ResetFailedReason,
			"Host %s: the reset command failed, see reset.log in /var/lib/cluster-api-hosts there", host.Name))
	}
	wait := step.WaitAtMost(pollInterval, "the reset command to run on Host "+host.Name).Because(hostsv1.ResettingReason)
	if now := condition.Get(m, hostsv1.HostReleasedCondition); now != nil && now.Reason == hostsv1.ResetFailedReason {
		return wait.KeepCondition()
	}
	return wait
}
