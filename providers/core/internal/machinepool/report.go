package machinepool

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 conditions of a MachinePool. Those about Machines are left out: most providers have none for their pools.
func reports(s *scope) []metav1.Condition {
	p := s.pool
	scale := replicas.Scale{Current: int(p.Status.Replicas), Desired: p.Spec.Replicas, Deleting: p.DeletionTimestamp != nil}
	conditions := []metav1.Condition{
		availableReport(p), scale.Up(), scale.Down(), replicas.Deleting(scale.Deleting, replicas.Machines(scale.Current)...),
	}
	conditions = append(conditions, s.bootstrapReport()...)
	return append(conditions, s.infrastructureReport()...)
}

func (s *scope) bootstrapReport() []metav1.Condition {
	t, p := clusterv1beta2.MachineBootstrapConfigReadyCondition, s.pool
	ref := p.Spec.Template.Spec.Bootstrap.ConfigRef
	if ref == nil {
		return []metav1.Condition{report.True(t, clusterv1beta2.MachineBootstrapDataSecretProvidedReason, "")}
	}
	return reference.Mirror{
		Type: t, Found: s.config, Kind: ref.Kind, Complete: p.Status.BootstrapReady, Owner: clusterv1.MachinePoolKind,
		Fallback: reference.BootstrapData,
	}.Ready(p)
}

func (s *scope) infrastructureReport() []metav1.Condition {
	p := s.pool
	return reference.Mirror{
		Type: clusterv1beta2.InfrastructureReadyCondition, Found: s.infrastructure, Kind: p.Spec.Template.Spec.InfrastructureRef.Kind,
		Complete: p.Status.InfrastructureReady, Owner: clusterv1.MachinePoolKind,
		Fallback: func(obj contract.Object) (bool, string, error) {
			infra := contract.InfrastructureMachinePoolOf(obj)
			done, err := infra.Provisioned()
			return done, infra.ProvisionedField(), err
		},
	}.Ready(p)
}

// availableReport reports whether all replicas are available.
func availableReport(p *clusterv1.MachinePool) metav1.Condition {
	t := clusterv1beta2.AvailableCondition
	switch available, wanted := p.Status.AvailableReplicas, desired(p); {
	case p.DeletionTimestamp != nil:
		return report.False(t, clusterv1beta2.NotAvailableReason, "Deletion in progress")
	case p.Status.V1Beta2 == nil || p.Status.V1Beta2.AvailableReplicas == nil:
		return report.Unknown(t, clusterv1beta2.MachineDeploymentAvailableWaitingForAvailableReplicasSetReason,
			"Waiting for status.availableReplicas set")
	case available < wanted:
		return report.False(t, clusterv1beta2.NotAvailableReason, "%d available replicas, at least %d required", available, wanted)
	}
	return report.True(t, clusterv1beta2.AvailableReason, "")
}

// setCounts sets the counters of v1beta2.
func setCounts(p *clusterv1.MachinePool, nodes []*corev1.Node) {
	if p.Status.V1Beta2 == nil {
		p.Status.V1Beta2 = &clusterv1.MachinePoolV1Beta2Status{}
	}
	upToDate, versions := int32(0), replicas.Versions{}
	for _, node := range nodes {
		versions[node.Status.NodeInfo.KubeletVersion]++
		if v := p.Spec.Template.Spec.Version; v == nil || node.Status.NodeInfo.KubeletVersion == *v {
			upToDate++
		}
	}
	p.Status.Versions = versions.Status()
	ready, available := p.Status.ReadyReplicas, p.Status.AvailableReplicas
	s := p.Status.V1Beta2
	s.ReadyReplicas, s.AvailableReplicas, s.UpToDateReplicas = &ready, &available, &upToDate
}
