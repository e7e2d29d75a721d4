package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// endpoint waits for the address of the API server, which the kubeconfig and Machines need.
func endpoint(_ context.Context, s *scope) (step.Result, error) {
	if !s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return step.Wait("the control plane endpoint of Cluster " + s.Key().String()), nil
	}
	return step.Done(), nil
}
