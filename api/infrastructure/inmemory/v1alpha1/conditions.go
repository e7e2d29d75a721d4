package v1alpha1

import (
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// conditionsOf returns conditions in the type that code has for them. Those of v1beta2 have limits, which these definitions do not have.
func conditionsOf(conditions clusterv1beta1.Conditions) clusterv1.Conditions {
	if conditions == nil {
		return nil
	}
	result := make(clusterv1.Conditions, 0, len(conditions))
	for _, c := range conditions {
		result = append(result, clusterv1.Condition{
			Type: clusterv1.ConditionType(c.Type), Status: c.Status, Severity: clusterv1.ConditionSeverity(c.Severity),
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return result
}

// stored is the reverse of conditionsOf.
func stored(conditions clusterv1.Conditions) clusterv1beta1.Conditions {
	if conditions == nil {
		return nil
	}
	result := make(clusterv1beta1.Conditions, 0, len(conditions))
	for _, c := range conditions {
		result = append(result, clusterv1beta1.Condition{
			Type: clusterv1beta1.ConditionType(c.Type), Status: c.Status, Severity: clusterv1beta1.ConditionSeverity(c.Severity),
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return result
}
