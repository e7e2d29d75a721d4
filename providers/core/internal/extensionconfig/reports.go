package extensionconfig

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 condition of an ExtensionConfig, which follows the one with a severity.
func reports(config *runtimev1.ExtensionConfig) []metav1.Condition {
	return []metav1.Condition{report.Of(runtimev1.ExtensionConfigDiscoveredCondition,
		condition.Get(config, runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition),
		runtimev1.ExtensionConfigDiscoveredReason, runtimev1.ExtensionConfigNotDiscoveredReason)}
}
