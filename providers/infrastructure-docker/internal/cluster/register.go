package cluster

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// register sets status.loadBalancerConfigured of the machines that enter and leave the configuration: one write each. The
// controller of machines waits for it before the bootstrap, and before it removes a container.
func (c *Controller) register(ctx context.Context, s *scope) (step.Result, error) {
	var errs []error
	for _, m := range s.machines {
		if !m.LoadBalancerConfigured && m.DeletionTimestamp.IsZero() {
			errs = append(errs, c.setConfigured(ctx, m, true))
		}
	}
	for _, m := range s.left {
		if m.LoadBalancerConfigured {
			errs = append(errs, c.setConfigured(ctx, m, false))
		}
	}
	return step.Done(), errors.Join(errs...)
}

func (c *Controller) setConfigured(ctx context.Context, m kinds.Machine, configured bool) error {
	patched := c.kinds.NewMachine()
	patched.SetNamespace(m.Namespace)
	patched.SetName(m.Name)
	patch := fmt.Appendf(nil, `{"status":{"loadBalancerConfigured":%t}}`, configured)
	err := c.Client.Status().Patch(ctx, patched, apiversion.Merge(m.Object, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("setting status.loadBalancerConfigured of %s %s: %w", m.Kind, m.Name, err)
	}
	return nil
}
