package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

func TestReports(t *testing.T) {
	const data, certificates = bootstrapv1.DataSecretAvailableV1Beta1Condition, bootstrapv1.CertificatesAvailableV1Beta1Condition
	info, warning := clusterv1.ConditionSeverityInfo, clusterv1.ConditionSeverityWarning
	for _, tt := range []struct {
		reason string
		stated []clusterv1.Condition
		want   []metav1.Condition
	}{
		{"a config without an owner has none", nil, nil},
		{"everything exists", []clusterv1.Condition{condition.True(data), condition.True(certificates)}, []metav1.Condition{
			report.True("Ready", "Ready", ""), report.True("DataSecretAvailable", "Available", ""),
			report.True("CertificatesAvailable", "Available", "")}},
		{"certificates are not needed yet", []clusterv1.Condition{
			condition.False(data, info, bootstrapv1.WaitingForClusterInfrastructureV1Beta1Reason, "")}, []metav1.Condition{
			report.False("Ready", "NotReady", "* DataSecretAvailable: Waiting for Cluster infrastructure to be ready"),
			report.False("DataSecretAvailable", "WaitingForClusterInfrastructureReady", "Waiting for Cluster infrastructure to be ready")}},
		{"another Machine initializes the cluster", []clusterv1.Condition{
			condition.False(data, info, bootstrapv1.WaitingForControlPlaneAvailableV1Beta1Reason, "")}, []metav1.Condition{
			report.False("Ready", "NotReady", "* DataSecretAvailable: Waiting for Cluster control plane to be initialized"),
			report.False("DataSecretAvailable", "WaitingForControlPlaneInitialized", "Waiting for Cluster control plane to be initialized")}},
		{"both failed", []clusterv1.Condition{
			condition.False(data, warning, bootstrapv1.DataSecretGenerationFailedV1Beta1Reason, "no CA"),
			condition.False(certificates, warning, bootstrapv1.CertificatesGenerationFailedV1Beta1Reason, "no key")}, []metav1.Condition{
			report.False("Ready", "NotReady", "* DataSecretAvailable: no CA\n* CertificatesAvailable: no key"),
			report.False("DataSecretAvailable", "NotAvailable", "no CA"), report.False("CertificatesAvailable", "NotAvailable", "no key")}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			config := &bootstrapv1.KubeadmConfig{}
			for _, c := range tt.stated {
				condition.Set(config, c)
			}
			if diff := cmp.Diff(tt.want, reports(&scope{config: config})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
