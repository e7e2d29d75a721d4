package machine

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// health summarizes the conditions of a Node. Values are comparable.
type health struct {
	status  corev1.ConditionStatus
	message string
}

// wanted lists the conditions of a healthy Node.
var wanted = [4]struct { // a constant table
	kind   corev1.NodeConditionType
	status corev1.ConditionStatus
}{
	{corev1.NodeReady, corev1.ConditionTrue},
	{corev1.NodeMemoryPressure, corev1.ConditionFalse},
	{corev1.NodeDiskPressure, corev1.ConditionFalse},
	{corev1.NodePIDPressure, corev1.ConditionFalse},
}

// healthOf returns False if a condition has the wrong status, Unknown if all of them are Unknown, and True otherwise. Missing
// conditions count as healthy.
func healthOf(node *corev1.Node) health {
	conditions := map[corev1.NodeConditionType]corev1.ConditionStatus{}
	for _, c := range node.Status.Conditions {
		conditions[c.Type] = c.Status
	}
	var bad []string
	unknown := 0
	for _, w := range wanted {
		status, ok := conditions[w.kind]
		switch {
		case !ok || status == w.status:
		case status == corev1.ConditionUnknown:
			unknown++
		default:
			bad = append(bad, "Node condition "+string(w.kind)+" is "+string(status))
		}
	}
	switch {
	case len(bad) > 0:
		return health{corev1.ConditionFalse, strings.Join(bad, ". ")}
	case unknown == len(wanted):
		return health{corev1.ConditionUnknown, "Node conditions are unknown"}
	}
	return health{corev1.ConditionTrue, ""}
}

func (h health) condition() clusterv1.Condition {
	switch h.status {
	case corev1.ConditionFalse:
		return condition.False(clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.ConditionSeverityWarning,
			clusterv1.NodeConditionsFailedV1Beta1Reason, "%s", h.message)
	case corev1.ConditionUnknown:
		return condition.Unknown(clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.NodeConditionsFailedV1Beta1Reason, "%s", h.message)
	}
	return condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition)
}
