package core

import (
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func machineSetUp(m *clusterv1beta1.MachineSet) *clusterv1.MachineSet {
	s, g := m.Status, m.Status.ObservedGeneration
	hub := &clusterv1.MachineSet{
		ObjectMeta: m.ObjectMeta,
		Spec: clusterv1.MachineSetSpec{
			ClusterName: m.Spec.ClusterName,
			Replicas:    m.Spec.Replicas,
			Selector:    m.Spec.Selector,
			Template:    templateUp(m.Spec.Template, optional(m.Spec.MinReadySeconds)),
			Deletion:    clusterv1.MachineSetDeletionSpec{Order: clusterv1.MachineSetDeletionOrder(m.Spec.DeletePolicy)},
		},
		Status: clusterv1.MachineSetStatus{Selector: s.Selector, Replicas: reported(g, s.Replicas), ObservedGeneration: g},
	}
	deprecated := clusterv1.MachineSetV1Beta1DeprecatedStatus{
		Conditions:           conditionsUp(s.Conditions),
		FailureReason:        text(s.FailureReason),
		FailureMessage:       s.FailureMessage,
		FullyLabeledReplicas: reported(g, s.FullyLabeledReplicas),
		ReadyReplicas:        reported(g, s.ReadyReplicas),
		AvailableReplicas:    reported(g, s.AvailableReplicas),
	}
	if isSet(deprecated) {
		hub.Status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{V1Beta1: &deprecated}
	}
	hub.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.MachineSetKind))
	return hub
}

func (c Converter) machineSetDown(m *clusterv1.MachineSet) *clusterv1beta1.MachineSet {
	s := m.Status
	old := &clusterv1beta1.MachineSet{
		ObjectMeta: m.ObjectMeta,
		Spec: clusterv1beta1.MachineSetSpec{
			ClusterName:     m.Spec.ClusterName,
			Replicas:        m.Spec.Replicas,
			Selector:        m.Spec.Selector,
			Template:        c.templateDown(m.Spec.Template, m.Namespace),
			MinReadySeconds: ptr.Deref(m.Spec.Template.Spec.MinReadySeconds, 0),
			DeletePolicy:    string(m.Spec.Deletion.Order),
		},
		Status: clusterv1beta1.MachineSetStatus{
			Selector: s.Selector, Replicas: ptr.Deref(s.Replicas, 0), ObservedGeneration: s.ObservedGeneration,
		},
	}
	if s.Deprecated != nil && s.Deprecated.V1Beta1 != nil {
		d := s.Deprecated.V1Beta1
		old.Status.Conditions = conditionsDown(d.Conditions)
		old.Status.FailureReason, old.Status.FailureMessage = failure[clusterv1beta1.MachineSetStatusError](d.FailureReason), d.FailureMessage
		old.Status.FullyLabeledReplicas = ptr.Deref(d.FullyLabeledReplicas, 0)
		old.Status.ReadyReplicas = ptr.Deref(d.ReadyReplicas, 0)
		old.Status.AvailableReplicas = ptr.Deref(d.AvailableReplicas, 0)
	}
	old.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(clusterv1beta1.MachineSetKind))
	return old
}
