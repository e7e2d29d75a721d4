package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/ssh"
	"sigs.k8s.io/cluster-api/provider/step"
)

// release resets the Host and removes its claim. A Host that was not reset becomes unschedulable.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	host, err := c.mine(ctx, s.obj)
	if err != nil {
		return step.Done(), err
	}
	if host != nil {
		clean, err := c.reset(ctx, s.obj, host)
		if err != nil {
			return step.Done(), err
		}
		release := func() {
			host.Spec.Claim = nil
			host.Spec.Unschedulable = host.Spec.Unschedulable || !clean
			controllerutil.RemoveFinalizer(host, hostsv1.HostFinalizer)
		}
		if err := c.Patch(ctx, host, true, release); client.IgnoreNotFound(err) != nil {
			return step.Done(), fmt.Errorf("releasing Host %s: %w", host.Name, err)
		}
		step.Event(ctx, "HostReleased", "Released Host %s", host.Name)
	}
	controllerutil.RemoveFinalizer(s.obj, hostsv1.HostMachineFinalizer)
	return step.Stop(), nil
}

// mine returns the Host that a HostMachine has claimed, from a live read; nil if there is none.
func (c *Controller) mine(ctx context.Context, m *hostsv1.HostMachine) (*hostsv1.Host, error) {
	list := &hostsv1.HostList{}
	if err := c.Live.List(ctx, list, client.InNamespace(m.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Hosts: %w", err)
	}
	for i := range list.Items {
		if hasClaim(&list.Items[i], m) {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// reset resets a Host, and reports whether it can be claimed again.
func (c *Controller) reset(ctx context.Context, m *hostsv1.HostMachine, host *hostsv1.Host) (clean bool, err error) {
	if _, abandoned := m.Annotations[hostsv1.AbandonAnnotation]; abandoned {
		return false, nil
	}
	answer, err := c.run(ctx, host, resetTimeout, ssh.Reset,
		map[string]string{"claim": string(host.Spec.Claim.ID), "command": cmp.Or(m.Spec.ResetCommand, ssh.KubeadmReset)}, nil)
	if err != nil {
		return false, err
	}
	switch strings.Join(answer, " ") {
	case "reset", "none":
		return true, nil
	case "conflict":
		return false, nil
	}
	return false, hostFailed(host, errors.New("the reset command failed, see log in /var/lib/cluster-api-hosts there"))
}
