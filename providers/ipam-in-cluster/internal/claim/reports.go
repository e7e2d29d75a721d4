package claim

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 condition of a claim, which follows the one with a severity. Claims of other providers have none.
func reports(s *scope) []metav1.Condition {
	if !s.isOurs() {
		return nil
	}
	older, no := condition.Get(s.claim, clusterv1.ReadyV1Beta1Condition), ipamv1.IPAddressClaimReadyAllocationFailedReason
	if older != nil {
		switch older.Reason {
		case inclusterv1.PoolNotReadyReason, inclusterv1.PoolBusyReason:
			no = ipamv1.IPAddressClaimReadyPoolNotReadyReason
		case inclusterv1.PoolExhaustedReason:
			no = ipamv1.IPAddressClaimReadyPoolExhaustedReason
		}
	}
	return []metav1.Condition{report.Of(ipamv1.IPAddressClaimReadyCondition, older, clusterv1.ReadyReason, no)}
}
