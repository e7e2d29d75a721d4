package core

import (
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func machinePoolUp(m *clusterv1beta1.MachinePool) *clusterv1.MachinePool {
	s, g := m.Status, m.Status.ObservedGeneration
	hub := &clusterv1.MachinePool{
		ObjectMeta: m.ObjectMeta,
		Spec: clusterv1.MachinePoolSpec{
			ClusterName:    m.Spec.ClusterName,
			Replicas:       m.Spec.Replicas,
			Template:       templateUp(m.Spec.Template, m.Spec.MinReadySeconds),
			ProviderIDList: m.Spec.ProviderIDList,
			FailureDomains: m.Spec.FailureDomains,
		},
		Status: clusterv1.MachinePoolStatus{
			Initialization: clusterv1.MachinePoolInitializationStatus{
				InfrastructureProvisioned: optional(s.InfrastructureReady), BootstrapDataSecretCreated: optional(s.BootstrapReady),
			},
			NodeRefs:           s.NodeRefs,
			Replicas:           reported(g, s.Replicas),
			Phase:              s.Phase,
			ObservedGeneration: g,
		},
	}
	deprecated := clusterv1.MachinePoolV1Beta1DeprecatedStatus{
		Conditions:          conditionsUp(s.Conditions),
		FailureReason:       text(s.FailureReason),
		FailureMessage:      s.FailureMessage,
		ReadyReplicas:       reported(g, s.ReadyReplicas),
		AvailableReplicas:   reported(g, s.AvailableReplicas),
		UnavailableReplicas: reported(g, s.UnavailableReplicas),
	}
	if isSet(deprecated) {
		hub.Status.Deprecated = &clusterv1.MachinePoolDeprecatedStatus{V1Beta1: &deprecated}
	}
	hub.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.MachinePoolKind))
	return hub
}

func (c Converter) machinePoolDown(m *clusterv1.MachinePool) *clusterv1beta1.MachinePool {
	s := m.Status
	old := &clusterv1beta1.MachinePool{
		ObjectMeta: m.ObjectMeta,
		Spec: clusterv1beta1.MachinePoolSpec{
			ClusterName:     m.Spec.ClusterName,
			Replicas:        m.Spec.Replicas,
			Template:        c.templateDown(m.Spec.Template, m.Namespace),
			MinReadySeconds: m.Spec.Template.Spec.MinReadySeconds,
			ProviderIDList:  m.Spec.ProviderIDList,
			FailureDomains:  m.Spec.FailureDomains,
		},
		Status: clusterv1beta1.MachinePoolStatus{
			InfrastructureReady: ptr.Deref(s.Initialization.InfrastructureProvisioned, false),
			BootstrapReady:      ptr.Deref(s.Initialization.BootstrapDataSecretCreated, false),
			NodeRefs:            s.NodeRefs,
			Replicas:            ptr.Deref(s.Replicas, 0),
			Phase:               s.Phase,
			ObservedGeneration:  s.ObservedGeneration,
		},
	}
	if s.Deprecated != nil && s.Deprecated.V1Beta1 != nil {
		d := s.Deprecated.V1Beta1
		old.Status.Conditions = conditionsDown(d.Conditions)
		old.Status.FailureReason, old.Status.FailureMessage = failure[clusterv1beta1.MachinePoolStatusFailure](d.FailureReason), d.FailureMessage
		old.Status.ReadyReplicas = ptr.Deref(d.ReadyReplicas, 0)
		old.Status.AvailableReplicas = ptr.Deref(d.AvailableReplicas, 0)
		old.Status.UnavailableReplicas = ptr.Deref(d.UnavailableReplicas, 0)
	}
	old.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(clusterv1beta1.MachinePoolKind))
	return old
}
