package machinepool

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// status reports the machines of the pool, including those that are being deleted: the core provider deletes Nodes that are not in
// spec.providerIDList, and a machine that is being deleted may still have to be drained.
//
// status.ready stays true once the pool had all its machines: it is about the pool, not about its size.
func (c *Controller[P, M]) status(_ context.Context, s *scope[P, M]) (step.Result, error) {
	fields := c.provider.Fields(s.obj)
	*fields.ProviderIDs = nil
	for _, m := range s.members {
		if m.ProviderID != "" {
			*fields.ProviderIDs = append(*fields.ProviderIDs, m.ProviderID)
		}
	}
	*fields.Replicas = int32(len(s.members))
	if c.provider.Report != nil {
		c.provider.Report(s.obj, s.members)
	}
	if s.pool == nil || s.cluster == nil || s.waits || !s.obj.GetDeletionTimestamp().IsZero() {
		return step.Done(), nil
	}
	staying, ready := 0, 0
	for _, m := range s.members {
		if !m.deleting() {
			staying++
			if m.Joined {
				ready++
			}
		}
	}
	want := s.replicas()
	condition.Set(s.obj, resized(want, len(s.members), staying))
	if ready < want {
		condition.Set(s.obj, condition.False(ReplicasReadyCondition, clusterv1.ConditionSeverityInfo,
			clusterv1.WaitingForReplicasReadyV1Beta1Reason,
			"%d of %d replicas are ready", ready, want))
		return step.Done(), nil
	}
	condition.Set(s.obj, condition.True(ReplicasReadyCondition))
	*fields.Ready = true
	if fields.Provisioned != nil {
		*fields.Provisioned = ptr.To(true)
	}
	return step.Done(), nil
}

// resized is the condition about the number of machines: all of them, and those that are not being deleted.
func resized(want, all, staying int) clusterv1.Condition {
	switch {
	case staying < want:
		return condition.False(ResizedCondition, clusterv1.ConditionSeverityWarning, clusterv1.ScalingUpV1Beta1Reason,
			"Scaling up to %d replicas (actual %d)", want, staying)
	case all > want:
		return condition.False(ResizedCondition, clusterv1.ConditionSeverityWarning, clusterv1.ScalingDownV1Beta1Reason,
			"Scaling down to %d replicas (actual %d)", want, all)
	}
	return condition.True(ResizedCondition)
}
