package clusterclass

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 conditions of a class. They follow its conditions with severities.
func reports(s *scope) []metav1.Condition {
	return []metav1.Condition{
		report.Of(clusterv1.ClusterClassVariablesReadyCondition,
			condition.Get(s.ClusterClass, clusterv1.ClusterClassVariablesReconciledV1Beta1Condition),
			clusterv1.ClusterClassVariablesReadyReason, clusterv1.ClusterClassVariablesReadyVariableDiscoveryFailedReason),
		report.Of(clusterv1.ClusterClassRefVersionsUpToDateCondition,
			condition.Get(s.ClusterClass, clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition),
			clusterv1.ClusterClassRefVersionsUpToDateReason, clusterv1.ClusterClassRefVersionsNotUpToDateReason),
	}
}
