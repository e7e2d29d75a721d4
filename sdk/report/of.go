package report

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Of returns the condition t that reports the same as a condition with a severity, with the reason yes if it is True, no if it is False,
// and the same reason if it is Unknown. If there is none, it removes t.
func Of(t string, older *clusterv1.Condition, yes, no string) metav1.Condition {
	switch {
	case older == nil:
		return None(t)
	case older.Status == corev1.ConditionTrue:
		return True(t, yes, "%s", older.Message)
	case older.Status == corev1.ConditionFalse:
		return False(t, no, "%s", older.Message)
	}
	return Unknown(t, older.Reason, "%s", older.Message)
}
