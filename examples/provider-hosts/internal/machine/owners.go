package machine

import (
	"context"

	"k8s.io/utils/ptr"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// owners waits for the Machine, and for the infrastructure of its Cluster.
func (c *Controller) owners(_ context.Context, s *scope) (step.Result, error) {
	switch {
	case s.machine == nil || s.cluster == nil:
		return step.Wait("its Machine and Cluster"), nil
	case !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return step.Wait("the infrastructure of Cluster " + s.cluster.Name).Because(hostsv1.WaitingForClusterReason), nil
	}
	return step.Done().KeepCondition(), nil
}
