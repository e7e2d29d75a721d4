package v1beta2

import (
	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InitializationStatus is what was achieved once, and stays so.
// +kubebuilder:validation:MinProperties=1
type InitializationStatus struct {
	// provisioned is true once the infrastructure is complete: of a cluster, when its control plane has an address; of a machine,
	// when it runs. Core waits for it.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// TemplateStatus describes the machines of a template.
type TemplateStatus struct {
	// capacity is the capacity of every Node of these machines. The cluster autoscaler reads it to scale from zero.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// DeprecatedStatus groups what goes with old API versions.
type DeprecatedStatus struct {
	// v1beta1 is what goes with API version v1beta1.
	// +optional
	V1Beta1 *V1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// V1Beta1DeprecatedStatus is what goes with API version v1beta1.
type V1Beta1DeprecatedStatus struct {
	// conditions are those that clients of v1beta1 see.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`
}

// v1beta1Conditions returns the conditions that clients of v1beta1 see.
func v1beta1Conditions(status *DeprecatedStatus) clusterv1.Conditions {
	if status == nil || status.V1Beta1 == nil {
		return nil
	}
	return status.V1Beta1.Conditions
}

// setV1Beta1Conditions replaces the conditions that clients of v1beta1 see.
func setV1Beta1Conditions(status **DeprecatedStatus, conditions clusterv1.Conditions) {
	if len(conditions) == 0 && *status == nil {
		return
	}
	if *status == nil {
		*status = &DeprecatedStatus{}
	}
	if (*status).V1Beta1 == nil {
		(*status).V1Beta1 = &V1Beta1DeprecatedStatus{}
	}
	(*status).V1Beta1.Conditions = conditions
}
