package machine

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// hooks waits until no annotation has the prefix, and records since when in status.deletion. Condition t reports it.
func (c *Controller) hooks(m *clusterv1.Machine, t clusterv1.ConditionType, prefix string) step.Result {
	if hook := hookOf(m, prefix); hook != "" {
		if !condition.IsFalse(m, t) {
			record(m, t, metav1.NewTime(c.Clock.Now().UTC().Truncate(time.Second)))
		}
		return step.Wait("annotation " + hook + " to be removed").Because(clusterv1.WaitingExternalHookV1Beta1Reason)
	}
	return step.Done()
}

func hookOf(m *clusterv1.Machine, prefix string) string {
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		if strings.HasPrefix(key, prefix) {
			return key
		}
	}
	return ""
}
