package core

import (
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func machineDeploymentUp(m *clusterv1beta1.MachineDeployment) *clusterv1.MachineDeployment {
	s, g := m.Status, m.Status.ObservedGeneration
	strategy, order := strategyUp(m.Spec.Strategy)
	hub := &clusterv1.MachineDeployment{
		ObjectMeta: m.ObjectMeta,
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: m.Spec.ClusterName,
			Replicas:    m.Spec.Replicas,
			Rollout:     clusterv1.MachineDeploymentRolloutSpec{After: timeUp(m.Spec.RolloutAfter), Strategy: strategy},
			Selector:    m.Spec.Selector,
			Template:    templateUp(m.Spec.Template, m.Spec.MinReadySeconds),
			Deletion:    clusterv1.MachineDeploymentDeletionSpec{Order: order},
			Paused:      optional(m.Spec.Paused),
		},
		Status: clusterv1.MachineDeploymentStatus{
			Selector: s.Selector, Replicas: reported(g, s.Replicas), Phase: s.Phase, ObservedGeneration: g,
		},
	}
	deprecated := clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{
		Conditions:          conditionsUp(s.Conditions),
		UpdatedReplicas:     reported(g, s.UpdatedReplicas),
		ReadyReplicas:       reported(g, s.ReadyReplicas),
		AvailableReplicas:   reported(g, s.AvailableReplicas),
		UnavailableReplicas: reported(g, s.UnavailableReplicas),
	}
	if isSet(deprecated) {
		hub.Status.Deprecated = &clusterv1.MachineDeploymentDeprecatedStatus{V1Beta1: &deprecated}
	}
	hub.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.MachineDeploymentKind))
	return hub
}

func (c Converter) machineDeploymentDown(m *clusterv1.MachineDeployment) *clusterv1beta1.MachineDeployment {
	s := m.Status
	old := &clusterv1beta1.MachineDeployment{
		ObjectMeta: m.ObjectMeta,
		Spec: clusterv1beta1.MachineDeploymentSpec{
			ClusterName:     m.Spec.ClusterName,
			Replicas:        m.Spec.Replicas,
			RolloutAfter:    timeDown(m.Spec.Rollout.After),
			Selector:        m.Spec.Selector,
			Template:        c.templateDown(m.Spec.Template, m.Namespace),
			Strategy:        strategyDown(m.Spec.Rollout.Strategy, m.Spec.Deletion.Order),
			MinReadySeconds: m.Spec.Template.Spec.MinReadySeconds,
			Paused:          ptr.Deref(m.Spec.Paused, false),
		},
		Status: clusterv1beta1.MachineDeploymentStatus{
			Selector: s.Selector, Replicas: ptr.Deref(s.Replicas, 0), Phase: s.Phase, ObservedGeneration: s.ObservedGeneration,
		},
	}
	if s.Deprecated != nil && s.Deprecated.V1Beta1 != nil {
		d := s.Deprecated.V1Beta1
		old.Status.Conditions = conditionsDown(d.Conditions)
		old.Status.UpdatedReplicas = ptr.Deref(d.UpdatedReplicas, 0)
		old.Status.ReadyReplicas = ptr.Deref(d.ReadyReplicas, 0)
		old.Status.AvailableReplicas = ptr.Deref(d.AvailableReplicas, 0)
		old.Status.UnavailableReplicas = ptr.Deref(d.UnavailableReplicas, 0)
	}
	old.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(clusterv1beta1.MachineDeploymentKind))
	return old
}

// strategyUp also returns which machines are deleted first, which is part of the strategy in v1beta1 only.
func strategyUp(s *clusterv1beta1.MachineDeploymentStrategy) (clusterv1.MachineDeploymentRolloutStrategy, clusterv1.MachineSetDeletionOrder) {
	if s == nil {
		return clusterv1.MachineDeploymentRolloutStrategy{}, ""
	}
	hub := clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.MachineDeploymentRolloutStrategyType(s.Type)}
	if s.RollingUpdate == nil {
		return hub, ""
	}
	hub.RollingUpdate.MaxSurge, hub.RollingUpdate.MaxUnavailable = s.RollingUpdate.MaxSurge, s.RollingUpdate.MaxUnavailable
	return hub, clusterv1.MachineSetDeletionOrder(ptr.Deref(s.RollingUpdate.DeletePolicy, ""))
}

func strategyDown(s clusterv1.MachineDeploymentRolloutStrategy, order clusterv1.MachineSetDeletionOrder) *clusterv1beta1.MachineDeploymentStrategy {
	if !isSet(s) && order == "" {
		return nil
	}
	old := &clusterv1beta1.MachineDeploymentStrategy{Type: clusterv1beta1.MachineDeploymentStrategyType(s.Type)}
	if isSet(s.RollingUpdate) || order != "" {
		old.RollingUpdate = &clusterv1beta1.MachineRollingUpdateDeployment{
			MaxSurge: s.RollingUpdate.MaxSurge, MaxUnavailable: s.RollingUpdate.MaxUnavailable, DeletePolicy: optional(string(order)),
		}
	}
	return old
}
