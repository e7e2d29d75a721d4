package cluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/provider/step"
)

// registration is the patch of a machine that the load balancer forwards to.
const registration = `{"status":{"loadBalancerConfigured":true}}`

// register sets status.loadBalancerConfigured of the machines in the configuration: one write per machine. The controller of
// DockerMachines only reads it.
func (c *Controller) register(ctx context.Context, s *scope) (step.Result, error) {
	var errs []error
	for _, m := range s.machines {
		if m.Status.LoadBalancerConfigured || !m.DeletionTimestamp.IsZero() {
			continue
		}
		patched := &dockerv1.DockerMachine{}
		patched.Namespace, patched.Name = m.Namespace, m.Name
		err := c.Client.Status().Patch(ctx, patched, client.RawPatch(types.MergePatchType, []byte(registration)))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("setting status.loadBalancerConfigured of DockerMachine %s: %w", m.Name, err))
		}
	}
	return step.Done(), errors.Join(errs...)
}
