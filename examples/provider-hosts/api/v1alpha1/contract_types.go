package v1alpha1

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Initialization reports what happened once, for contract v1beta2.
type Initialization struct {
	// provisioned is true once the infrastructure is complete: of a Cluster, when there is an endpoint; of a Machine, when the bootstrap
	// data succeeded.
	// +optional
	Provisioned bool `json:"provisioned,omitempty"`
}

// Deprecated is what contract v1beta2 does not have.
type Deprecated struct {
	// v1beta1 is for contract v1beta1.
	// +optional
	V1Beta1 V1Beta1Deprecated `json:"v1beta1,omitempty,omitzero"`
}

// V1Beta1Deprecated is for contract v1beta1.
type V1Beta1Deprecated struct {
	// conditions describe the present state, with severities.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`
}

// V1Beta1Conditions returns the conditions with severities.
func (d *Deprecated) V1Beta1Conditions() clusterv1.Conditions {
	if d == nil {
		return nil
	}
	return d.V1Beta1.Conditions
}

// WithV1Beta1Conditions returns the part of a status with conditions with severities.
func WithV1Beta1Conditions(conditions clusterv1.Conditions) *Deprecated {
	if len(conditions) == 0 {
		return nil
	}
	return &Deprecated{V1Beta1: V1Beta1Deprecated{Conditions: conditions}}
}
