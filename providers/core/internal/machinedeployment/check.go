package machinedeployment

import (
	"context"
	"fmt"

	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// check waits for the Cluster, and fails for an object that the webhook has not defaulted.
func (c *Controller) check(_ context.Context, s *scope) (step.Result, error) {
	md := s.deployment
	if md.Spec.Replicas == nil {
		return step.Done(), step.Terminal(
			fmt.Errorf("spec.replicas of MachineDeployment %s is not set: update the object, so that the webhook defaults it", md.Name))
	}
	return ownership.WaitForCluster(s.cluster, md.Spec.ClusterName), nil
}
