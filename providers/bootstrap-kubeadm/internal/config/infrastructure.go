package config

import (
	"context"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// infrastructure waits until the cluster has an endpoint. Data that exists no longer depends on it: nothing would correct its
// condition when the infrastructure is ready again.
func (c *Controller) infrastructure(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster.Status.InfrastructureReady || s.config.Status.Ready {
		return step.Done(), nil
	}
	return step.Wait("the infrastructure of Cluster " + s.cluster.Name).
		WithConditions(condition.False(bootstrapv1.DataSecretAvailableCondition,
			clusterv1.ConditionSeverityInfo, bootstrapv1.WaitingForClusterInfrastructureReason, "")), nil
}
