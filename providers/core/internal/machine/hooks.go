package machine

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

func hooks(m *clusterv1.Machine, prefix string) step.Result {
	if hook := hookOf(m, prefix); hook != "" {
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
