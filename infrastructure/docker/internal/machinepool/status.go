package machinepool

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/node"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// status reports the machines of the pool, including those that are being deleted: the core provider deletes Nodes that are not in
// spec.providerIDList, and a machine that is being deleted may still have to be drained.
//
// status.ready stays true once the pool had all its machines: it is about the pool, not about its size.
func (c *Controller) status(_ context.Context, s *scope) (step.Result, error) {
	s.obj.Spec.ProviderIDList, s.obj.Status.Instances = nil, nil
	for _, m := range s.members {
		if id := ptr.Deref(m.obj.Spec.ProviderID, ""); id != "" {
			s.obj.Spec.ProviderIDList = append(s.obj.Spec.ProviderIDList, id)
		}
		s.obj.Status.Instances = append(s.obj.Status.Instances, s.instance(m))
	}
	s.obj.Status.Replicas = int32(len(s.members))
	if s.pool == nil || s.cluster == nil || s.waits || !s.obj.DeletionTimestamp.IsZero() {
		return step.Done(), nil
	}
	staying, ready := 0, 0
	for _, m := range s.members {
		if !m.deleting() {
			staying++
			if m.joined() {
				ready++
			}
		}
	}
	want := s.replicas()
	condition.Set(s.obj, resized(want, len(s.members), staying))
	if ready < want {
		condition.Set(s.obj, condition.False(dockerv1.ReplicasReadyCondition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForReplicasReadyReason,
			"%d of %d replicas are ready", ready, want))
		return step.Done(), nil
	}
	condition.Set(s.obj, condition.True(dockerv1.ReplicasReadyCondition))
	s.obj.Status.Ready = true
	return step.Done(), nil
}

// instance returns the status of a machine.
func (s *scope) instance(m member) dockerv1.DockerMachinePoolInstanceStatus {
	out := dockerv1.DockerMachinePoolInstanceStatus{
		Addresses: m.obj.Status.Addresses, ProviderID: m.obj.Spec.ProviderID, Ready: m.joined(), Bootstrapped: m.obj.Spec.Bootstrapped,
		InstanceName: node.Machine{Object: m.obj, Owner: m.machine, Cluster: s.obj.Labels[clusterv1.ClusterNameLabel]}.Container(),
	}
	if m.machine != nil {
		out.Version = m.machine.Spec.Version
	}
	return out
}

// resized is the condition about the number of machines: all of them, and those that are not being deleted.
func resized(want, all, staying int) clusterv1.Condition {
	switch {
	case staying < want:
		return condition.False(dockerv1.ResizedCondition, clusterv1.ConditionSeverityWarning, clusterv1.ScalingUpReason,
			"Scaling up to %d replicas (actual %d)", want, staying)
	case all > want:
		return condition.False(dockerv1.ResizedCondition, clusterv1.ConditionSeverityWarning, clusterv1.ScalingDownReason,
			"Scaling down to %d replicas (actual %d)", want, all)
	}
	return condition.True(dockerv1.ResizedCondition)
}
