package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func machineUp(m *clusterv1beta1.Machine) *clusterv1.Machine {
	s := m.Status
	hub := &clusterv1.Machine{ObjectMeta: m.ObjectMeta, Spec: machineSpecUp(m.Spec), Status: clusterv1.MachineStatus{
		Initialization: clusterv1.MachineInitializationStatus{
			InfrastructureProvisioned: optional(s.InfrastructureReady), BootstrapDataSecretCreated: optional(s.BootstrapReady),
		},
		NodeInfo:               s.NodeInfo,
		LastUpdated:            timeUp(s.LastUpdated),
		Addresses:              addressesUp(s.Addresses),
		Phase:                  s.Phase,
		CertificatesExpiryDate: timeUp(s.CertificatesExpiryDate),
		ObservedGeneration:     s.ObservedGeneration,
	}}
	if s.NodeRef != nil {
		hub.Status.NodeRef.Name = s.NodeRef.Name
	}
	if s.Conditions != nil || s.FailureReason != nil || s.FailureMessage != nil {
		hub.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{
			Conditions: conditionsUp(s.Conditions), FailureReason: text(s.FailureReason), FailureMessage: s.FailureMessage,
		}}
	}
	hub.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))
	return hub
}

func (c Converter) machineDown(m *clusterv1.Machine) *clusterv1beta1.Machine {
	s := m.Status
	old := &clusterv1beta1.Machine{ObjectMeta: m.ObjectMeta, Spec: c.machineSpecDown(m.Spec, m.Namespace), Status: clusterv1beta1.MachineStatus{
		InfrastructureReady:    ptr.Deref(s.Initialization.InfrastructureProvisioned, false),
		BootstrapReady:         ptr.Deref(s.Initialization.BootstrapDataSecretCreated, false),
		NodeInfo:               s.NodeInfo,
		LastUpdated:            timeDown(s.LastUpdated),
		Addresses:              addressesDown(s.Addresses),
		Phase:                  s.Phase,
		CertificatesExpiryDate: timeDown(s.CertificatesExpiryDate),
		ObservedGeneration:     s.ObservedGeneration,
	}}
	if s.Phase == string(clusterv1.MachinePhaseUpdating) {
		old.Status.Phase = string(clusterv1beta1.MachinePhaseRunning)
	}
	if s.NodeRef.IsDefined() {
		old.Status.NodeRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: s.NodeRef.Name}
	}
	if s.Deprecated != nil && s.Deprecated.V1Beta1 != nil {
		d := s.Deprecated.V1Beta1
		old.Status.Conditions = conditionsDown(d.Conditions)
		old.Status.FailureReason, old.Status.FailureMessage = failure[clusterv1beta1.MachineStatusError](d.FailureReason), d.FailureMessage
	}
	old.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(clusterv1beta1.MachineKind))
	return old
}

func machineSpecUp(s clusterv1beta1.MachineSpec) clusterv1.MachineSpec {
	return clusterv1.MachineSpec{
		ClusterName:       s.ClusterName,
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: refUp(s.Bootstrap.ConfigRef), DataSecretName: s.Bootstrap.DataSecretName},
		InfrastructureRef: refUp(&s.InfrastructureRef),
		Version:           ptr.Deref(s.Version, ""),
		ProviderID:        ptr.Deref(s.ProviderID, ""),
		FailureDomain:     ptr.Deref(s.FailureDomain, ""),
		Deletion: clusterv1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds:        seconds(s.NodeDrainTimeout),
			NodeVolumeDetachTimeoutSeconds: seconds(s.NodeVolumeDetachTimeout),
			NodeDeletionTimeoutSeconds:     seconds(s.NodeDeletionTimeout),
		},
	}
}

func (c Converter) machineSpecDown(s clusterv1.MachineSpec, namespace string) clusterv1beta1.MachineSpec {
	return clusterv1beta1.MachineSpec{
		ClusterName: s.ClusterName,
		Bootstrap: clusterv1beta1.Bootstrap{
			ConfigRef: c.refDown(s.Bootstrap.ConfigRef, namespace), DataSecretName: s.Bootstrap.DataSecretName,
		},
		InfrastructureRef:       ptr.Deref(c.refDown(s.InfrastructureRef, namespace), corev1.ObjectReference{}),
		Version:                 optional(s.Version),
		ProviderID:              optional(s.ProviderID),
		FailureDomain:           optional(s.FailureDomain),
		NodeDrainTimeout:        duration(s.Deletion.NodeDrainTimeoutSeconds),
		NodeVolumeDetachTimeout: duration(s.Deletion.NodeVolumeDetachTimeoutSeconds),
		NodeDeletionTimeout:     duration(s.Deletion.NodeDeletionTimeoutSeconds),
	}
}

// templateUp also moves minReadySeconds, which v1beta1 has next to the template.
func templateUp(t clusterv1beta1.MachineTemplateSpec, minReadySeconds *int32) clusterv1.MachineTemplateSpec {
	hub := clusterv1.MachineTemplateSpec{ObjectMeta: metaUp(t.ObjectMeta), Spec: machineSpecUp(t.Spec)}
	hub.Spec.MinReadySeconds = minReadySeconds
	return hub
}

func (c Converter) templateDown(t clusterv1.MachineTemplateSpec, namespace string) clusterv1beta1.MachineTemplateSpec {
	return clusterv1beta1.MachineTemplateSpec{ObjectMeta: metaDown(t.ObjectMeta), Spec: c.machineSpecDown(t.Spec, namespace)}
}

func addressesUp(addresses clusterv1beta1.MachineAddresses) clusterv1.MachineAddresses {
	return each(addresses, func(a clusterv1beta1.MachineAddress) clusterv1.MachineAddress {
		return clusterv1.MachineAddress{Type: clusterv1.MachineAddressType(a.Type), Address: a.Address}
	})
}

func addressesDown(addresses clusterv1.MachineAddresses) clusterv1beta1.MachineAddresses {
	return each(addresses, func(a clusterv1.MachineAddress) clusterv1beta1.MachineAddress {
		return clusterv1beta1.MachineAddress{Type: clusterv1beta1.MachineAddressType(a.Type), Address: a.Address}
	})
}
