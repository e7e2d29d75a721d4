package step

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// conditionsOf returns what sets the conditions of an object. Those of a kind without conditions are dropped.
func conditionsOf(obj client.Object) condition.Setter {
	if setter, ok := obj.(condition.Setter); ok {
		return setter
	}
	return noConditions{}
}

type noConditions struct{}

// GetV1Beta1Conditions implements condition.Getter.
func (noConditions) GetV1Beta1Conditions() clusterv1.Conditions { return nil }

// SetV1Beta1Conditions implements condition.Setter.
func (noConditions) SetV1Beta1Conditions(clusterv1.Conditions) {}

// reportFields are the fields of the status of kinds with metav1 conditions that are for people, who read no other status of an object
// more often than these change. Code reads the conditions with severities, and the other fields.
func reportFields() []string {
	return []string{"conditions", "controlPlane", "workers", "readyReplicas", "availableReplicas", "upToDateReplicas"}
}

// reportsOf returns what sets the metav1 conditions of an object. Those of a kind without them are dropped.
func reportsOf(obj client.Object) report.Setter {
	if setter, ok := obj.(report.Setter); ok {
		return setter
	}
	return noConditions{}
}

// GetConditions implements report.Getter.
func (noConditions) GetConditions() []metav1.Condition { return nil }

// SetConditions implements report.Setter.
func (noConditions) SetConditions([]metav1.Condition) {}
