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
	case s.noStore:
		return []metav1.Condition{report.False(healthy, fleetv1.PolicyInvalidReason,
			"spec.storeRef: BackupStore %s does not exist in namespace %s", s.policy.Spec.StoreRef.Name, s.policy.Namespace)}
	case len(s.plan.Overdue) > 0:
		return []metav1.Condition{report.False(healthy, fleetv1.PolicyOverdueReason,
			"No recent backup of %s: see their EtcdBackups", report.Names(s.plan.Overdue))}
	case ptr.Deref(s.policy.Spec.Paused, false):
		return []metav1.Condition{report.Unknown(healthy, fleetv1.PolicySuspendedReason, "spec.paused is set")}
	case len(s.clusters) == 0:
		return []metav1.Condition{report.Unknown(healthy, fleetv1.PolicyNoClustersReason,
			"spec.clusterSelector selects no Cluster in namespace %s", s.policy.Namespace)}
	case len(s.plan.Waiting) > 0:
		return []metav1.Condition{report.Unknown(healthy, fleetv1.PolicyWaitingReason,
			"Waiting for the first backup of %s", report.Names(s.plan.Waiting))}
	}
	return []metav1.Condition{report.True(healthy, fleetv1.PolicyHealthyReason, "")}
}
