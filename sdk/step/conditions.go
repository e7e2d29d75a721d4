package step

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
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
