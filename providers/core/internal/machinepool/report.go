package machinepool

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 conditions of a MachinePool. Those about Machines are left out: most providers have none for their pools.
func reports(s *scope) []metav1.Condition {
	p := s.pool
	scale := replicas.Scale{Current: int(ptr.Deref(p.Status.Replicas, 0)), Desired: p.Spec.Replicas, Deleting: p.DeletionTimestamp != nil}
	conditions := []metav1.Condition{
		availableReport(p), scale.Up(), scale.Down(), replicas.Deleting(scale.Deleting, replicas.Machines(scale.Current)...),
	}
	conditions = append(conditions, s.bootstrapReport()...)
	return append(conditions, s.infrastructureReport()...)
}

func (s *scope) bootstrapReport() []metav1.Condition {
	t, p := clusterv1.MachineBootstrapConfigReadyCondition, s.pool
	ref := p.Spec.Template.Spec.Bootstrap.ConfigRef
	if !ref.IsDefined() {
		return []metav1.Condition{report.True(t, clusterv1.MachineBootstrapDataSecretProvidedReason, "")}
	}
	return reference.Mirror{
		Type: t, Found: s.config, Kind: ref.Kind, Owner: clusterv1.MachinePoolKind,
		Complete: ptr.Deref(p.Status.Initialization.BootstrapDataSecretCreated, false), Fallback: reference.BootstrapData,
	}.Ready(p)
}

func (s *scope) infrastructureReport() []metav1.Condition {
	p := s.pool
	return reference.Mirror{
		Type: clusterv1.InfrastructureReadyCondition, Found: s.infrastructure, Kind: p.Spec.Template.Spec.InfrastructureRef.Kind,
		Complete: ptr.Deref(p.Status.Initialization.InfrastructureProvisioned, false), Owner: clusterv1.MachinePoolKind,
		Fallback: func(obj contract.Object) (bool, string, error) {
			infra := contract.InfrastructureMachinePoolOf(obj)
			done, err := infra.Provisioned()
			return done, infra.ProvisionedField(), err
		},
	}.Ready(p)
}

// availableReport reports whether all replicas are available.
func availableReport(p *clusterv1.MachinePool) metav1.Condition {
	t := clusterv1.AvailableCondition
	switch available, wanted := ptr.Deref(p.Status.AvailableReplicas, 0), desired(p); {
	case p.DeletionTimestamp != nil:
		return report.False(t, clusterv1.NotAvailableReason, "Deletion in progress")
	case p.Status.AvailableReplicas == nil:
		return report.Unknown(t, clusterv1.MachineDeploymentAvailableWaitingForAvailableReplicasSetReason,
			"Waiting for status.availableReplicas set")
	case available < wanted:
		return report.False(t, clusterv1.NotAvailableReason, "%d available replicas, at least %d required", available, wanted)
	}
	return report.True(t, clusterv1.AvailableReason, "")
}

// setCounts sets the counters, also those of v1beta1, of which it shows no zeros.
func setCounts(p *clusterv1.MachinePool, ready, available int32, nodes []*corev1.Node) {
	upToDate, versions := int32(0), replicas.Versions{}
	for _, node := range nodes {
		versions[node.Status.NodeInfo.KubeletVersion]++
		if v := p.Spec.Template.Spec.Version; v == "" || node.Status.NodeInfo.KubeletVersion == v {
			upToDate++
		}
	}
	p.Status.Versions = versions.Status()
	p.Status.ReadyReplicas, p.Status.AvailableReplicas, p.Status.UpToDateReplicas = &ready, &available, &upToDate
	older := p.GetV1Beta1Status()
	older.ReadyReplicas, older.AvailableReplicas = unlessZero(ready), unlessZero(available)
	older.UnavailableReplicas = unlessZero(max(0, ptr.Deref(p.Status.Replicas, 0)-available))
	p.SetV1Beta1Status(older)
}
