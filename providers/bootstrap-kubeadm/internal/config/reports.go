package config

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 conditions. They say what the steps have found; there are none before a step has found anything, as of a
// config without an owner.
func reports(s *scope) []metav1.Condition {
	secret := condition.Get(s.config, bootstrapv1.DataSecretAvailableV1Beta1Condition)
	certificates := condition.Get(s.config, bootstrapv1.CertificatesAvailableV1Beta1Condition)
	if secret == nil && certificates == nil {
		return nil
	}
	var sources []report.Source
	reported := func(t string, c *clusterv1.Condition) {
		if c != nil {
			sources = append(sources, report.Source{Condition: availability(t, c)})
		}
	}
	reported(bootstrapv1.KubeadmConfigDataSecretAvailableCondition, secret)
	reported(bootstrapv1.KubeadmConfigCertificatesAvailableCondition, certificates)
	all := []metav1.Condition{report.Summary(clusterv1.ReadyCondition, report.Reasons{
		True: clusterv1.ReadyReason, False: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason,
	}, sources...)}
	for _, s := range sources {
		all = append(all, s.Condition)
	}
	return all
}

// availability returns the condition t for what a step has stated. Every reason of v1beta1 that is none of waiting means the same to
// readers; what failed is in the message.
func availability(t string, c *clusterv1.Condition) metav1.Condition {
	switch {
	case c.Status == corev1.ConditionTrue:
		return report.True(t, clusterv1.AvailableReason, "")
	case c.Reason == bootstrapv1.WaitingForClusterInfrastructureV1Beta1Reason:
		return report.False(t, clusterv1.WaitingForClusterInfrastructureReadyReason, "Waiting for Cluster infrastructure to be ready")
	case c.Reason == bootstrapv1.WaitingForControlPlaneAvailableV1Beta1Reason:
		return report.False(t, clusterv1.WaitingForControlPlaneInitializedReason, "Waiting for Cluster control plane to be initialized")
	}
	return report.False(t, clusterv1.NotAvailableReason, "%s", c.Message)
}
