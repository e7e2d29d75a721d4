package healthcheck

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 conditions of a check; none before its first counters.
func reports(s *scope) []metav1.Condition {
	t := clusterv1.MachineHealthCheckRemediationAllowedCondition
	switch allowed := condition.Get(s.check, clusterv1.RemediationAllowedV1Beta1Condition); {
	case allowed == nil:
		return nil
	case allowed.Status == corev1.ConditionTrue:
		return []metav1.Condition{report.True(t, clusterv1.MachineHealthCheckRemediationAllowedReason, "")}
	case allowed.Reason == clusterv1.TooManyUnhealthyV1Beta1Reason:
		return []metav1.Condition{report.False(t, clusterv1.MachineHealthCheckTooManyUnhealthyReason, "%s", allowed.Message)}
	default:
		return []metav1.Condition{report.False(t, allowed.Reason, "%s", allowed.Message)}
	}
}
