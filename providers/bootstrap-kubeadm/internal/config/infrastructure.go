package config

import (
	"context"

	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// infrastructure waits until the cluster has an endpoint. Data that exists no longer depends on it: nothing would correct its
// condition when the infrastructure is ready again.
func (c *Controller) infrastructure(_ context.Context, s *scope) (step.Result, error) {
	if ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false) || s.ready() {
		return step.Done(), nil
	}
	return step.Wait("the infrastructure of Cluster " + s.cluster.Name).
		WithConditions(condition.False(bootstrapv1.DataSecretAvailableV1Beta1Condition,
			clusterv1.ConditionSeverityInfo, bootstrapv1.WaitingForClusterInfrastructureV1Beta1Reason, "")), nil
}
