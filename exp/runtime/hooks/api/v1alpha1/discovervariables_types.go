package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

var _ ResponseObject = &DiscoverVariablesResponse{}

// +kubebuilder:object:root=true

// DiscoverVariablesResponse is the response of the hook DiscoverVariables.
type DiscoverVariablesResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonResponse are the fields of all responses.
	runtimehooksv1.CommonResponse `json:",inline"`

	// variables are the definitions of the variables that the patch uses.
	Variables []clusterv1.ClusterClassVariable `json:"variables"`
}

// DiscoverVariables is called for the definitions of the variables that an external patch uses.
func DiscoverVariables(*DiscoverVariablesRequest, *DiscoverVariablesResponse) {}
