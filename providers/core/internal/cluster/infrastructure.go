package cluster

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// infrastructure copies the state of the infrastructure object. A Cluster without one needs no infrastructure: it is ready.
func (c *Controller) infrastructure(ctx context.Context, s *scope) (step.Result, error) {
	cluster, ref := s.Cluster, &s.Spec.InfrastructureRef
	if !ref.IsDefined() {
		cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		return step.Done(), nil
	}
	obj, exists, err := c.adopt(ctx, cluster, ref)
	s.infrastructure = reference.FoundOf(obj, exists, err)
	if err != nil {
		return step.Done(), err
	}
	if !exists {
		return waitForObject(cluster, ref, clusterv1.InfrastructureReadyV1Beta1Condition,
			clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason), nil
	}
	infra := contract.InfrastructureClusterOf(obj)
	ready, err := infra.Provisioned()
	if err != nil {
		return step.Done(), err
	}
	if ready != ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false) {
		recordReadiness(ctx, cluster, clusterv1.InfrastructureReadyV1Beta1Condition, ready)
	}
	cluster.Status.Initialization.InfrastructureProvisioned = nilIfZero(ready)
	result, err := reference.Readiness(infra.Object, ready, clusterv1.InfrastructureReadyV1Beta1Condition,
		clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason)
	if err != nil || !ready {
		return result, err
	}
	return result, c.copyInfrastructure(ctx, cluster, infra)
}

// copyInfrastructure copies the failure domains, and the endpoint unless the Cluster has one.
func (c *Controller) copyInfrastructure(ctx context.Context, cluster *clusterv1.Cluster, infra contract.InfrastructureCluster) error {
	domains, err := infra.FailureDomains()
	if err != nil {
		return err
	}
	cluster.Status.FailureDomains = domains
	if cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return nil
	}
	endpoint, err := endpointOf(infra)
	if err != nil {
		return err
	}
	if !endpoint.IsZero() {
		cluster.Spec.ControlPlaneEndpoint = endpoint
		return nil
	}
	if hosted, err := c.mayHaveEndpoint(ctx, cluster); err != nil || hosted {
		return err
	}
	return contract.Violated("%s %s/%s is ready, but spec.controlPlaneEndpoint is set neither there nor on the Cluster: "+
		"its provider must set host and port there, or you on the Cluster", infra.GetKind(), infra.GetNamespace(), infra.GetName())
}

const maxPort = 65535

// endpointOf returns the endpoint of an infrastructure object, which may be zero. What the API server would reject in the Cluster is an
// error of the provider.
func endpointOf(infra contract.InfrastructureCluster) (clusterv1.APIEndpoint, error) {
	endpoint, _, err := infra.ControlPlaneEndpoint()
	if err != nil || endpoint.IsZero() {
		return endpoint, err
	}
	if endpoint.Host == "" || endpoint.Port < 1 || endpoint.Port > maxPort {
		err = contract.Violated("%s %s/%s is ready, but spec.controlPlaneEndpoint has host %q and port %d: "+
			"its provider must set both, the port from 1 to %d",
			infra.GetKind(), infra.GetNamespace(), infra.GetName(), condition.Brief(endpoint.Host), endpoint.Port, maxPort)
	}
	return endpoint, err
}
