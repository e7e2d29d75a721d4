package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// observe observes the workload cluster of a control plane that is being deleted, if there is a connection. Unlike inspect, it
// sets no conditions.
func observe(ctx context.Context, s *scope) (_ step.Result, err error) {
	if s.connection.Workload != nil {
		s.observed, err = health.Observe(ctx, s.ControlPlane, s.connection.Workload)
	}
	return step.Done(), err
}
