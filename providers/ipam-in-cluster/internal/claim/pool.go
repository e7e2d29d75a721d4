package claim

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// pool waits for the pool. Claims that have their address do not need it.
func pool(_ context.Context, s *scope) (step.Result, error) {
	waiting := func(what string) (step.Result, error) {
		if s.claim.Status.AddressRef.Name != "" {
			return step.Done(), nil
		}
		return step.Wait(what).WithConditions(condition.False(clusterv1.ReadyV1Beta1Condition, clusterv1.ConditionSeverityWarning,
			inclusterv1.PoolNotReadyReason, "Waiting for %s", what)), nil
	}
	switch {
	case s.pool == nil:
		return waiting(s.key.String() + " to exist")
	case isPaused(s.pool):
		return waiting(s.key.String() + " to be resumed, because it is paused")
	case condition.IsFalse(s.pool, clusterv1.ReadyV1Beta1Condition) && s.pool.GetDeletionTimestamp().IsZero():
		return waiting("the spec of " + s.key.String() + " to be valid")
	}
	return step.Done(), nil
}

func isPaused(p poolref.Pool) bool {
	_, paused := p.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}
