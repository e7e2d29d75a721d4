package machine

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// loadBalancer waits until the controller of the DockerCluster reports that the load balancer forwards to this machine: kubeadm
// reaches the API server that it starts through it.
func (c *Controller) loadBalancer(_ context.Context, s *scope) (step.Result, error) {
	if !s.IsControlPlane() || s.HadContainer() || s.obj.LoadBalancerConfigured {
		return step.Done(), nil
	}
	return step.Wait("the load balancer of Cluster " + s.cluster.Name + " to forward to container " + s.Container()), nil
}
