package cluster

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// register sets status.loadBalancerConfigured of the machines that enter and leave the configuration: one write each. The
// controller of DockerMachines waits for it before the bootstrap, and before it removes a container.
func (c *Controller) register(ctx context.Context, s *scope) (step.Result, error) {
	var errs []error
	for _, m := range s.machines {
		if !m.Status.LoadBalancerConfigured && m.DeletionTimestamp.IsZero() {
			errs = append(errs, c.setConfigured(ctx, m, true))
		}
	}
	for _, m := range s.left {
		if m.Status.LoadBalancerConfigured {
			errs = append(errs, c.setConfigured(ctx, m, false))
		}
	}
	return step.Done(), errors.Join(errs...)
}

func (c *Controller) setConfigured(ctx context.Context, m *dockerv1.DockerMachine, configured bool) error {
	patched := &dockerv1.DockerMachine{}
	patched.Namespace, patched.Name = m.Namespace, m.Name
	patch := fmt.Appendf(nil, `{"status":{"loadBalancerConfigured":%t}}`, configured)
	err := c.Client.Status().Patch(ctx, patched, apiversion.Merge(m, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("setting status.loadBalancerConfigured of DockerMachine %s: %w", m.Name, err)
	}
	return nil
}
