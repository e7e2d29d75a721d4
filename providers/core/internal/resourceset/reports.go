package resourceset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 condition of a ClusterResourceSet, which follows the one with a severity.
func reports(s *scope) []metav1.Condition {
	older, no := condition.Get(s.set, addonsv1.ResourcesAppliedV1Beta1Condition), addonsv1.ResourcesNotAppliedReason
	if older != nil && older.Reason == addonsv1.WrongSecretTypeV1Beta1Reason {
		no = addonsv1.WrongSecretTypeReason
	}
	return []metav1.Condition{report.Of(addonsv1.ResourcesAppliedCondition, older, addonsv1.ResourcesAppliedReason, no)}
}
