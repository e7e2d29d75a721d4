package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the condition of a policy.
func reports(s *scope) []metav1.Condition {
	const healthy = fleetv1.PolicyHealthyCondition
	switch {
	case s.invalid != nil:
		return []metav1.Condition{report.False(healthy, fleetv1.PolicyInvalidReason, "%v", s.invalid)}
	case len(s.plan.Overdue) > 0:
		return []metav1.Condition{report.False(healthy, fleetv1.PolicyOverdueReason,
			"No recent backup of %s: see their EtcdBackups", report.Names(s.plan.Overdue))}
	case ptr.Deref(s.policy.Spec.Paused, false):
		return []metav1.Condition{report.Unknown(healthy, fleetv1.PolicySuspendedReason, "spec.paused is set")}
	case len(s.clusters) == 0:
		return []metav1.Condition{report.Unknown(healthy, fleetv1.PolicyNoClustersReason,
			"spec.clusterSelector selects no Cluster in namespace %s", s.policy.Namespace)}
	}
	return []metav1.Condition{report.True(healthy, fleetv1.PolicyHealthyReason, "")}
}
