package step

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
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

// GetConditions implements condition.Getter.
func (noConditions) GetConditions() clusterv1.Conditions { return nil }

// SetConditions implements condition.Setter.
func (noConditions) SetConditions(clusterv1.Conditions) {}

// reportsField is the field of a status of v1beta1 with the metav1 conditions and the counters of v1beta2.
const reportsField = "v1beta2"

// reportsOf returns what sets the metav1 conditions of an object. Those of a kind without them are dropped.
func reportsOf(obj client.Object) report.Setter {
	if setter, ok := obj.(report.Setter); ok {
		return setter
	}
	return noConditions{}
}

// GetV1Beta2Conditions implements report.Getter.
func (noConditions) GetV1Beta2Conditions() []metav1.Condition { return nil }

// SetV1Beta2Conditions implements report.Setter.
func (noConditions) SetV1Beta2Conditions([]metav1.Condition) {}
