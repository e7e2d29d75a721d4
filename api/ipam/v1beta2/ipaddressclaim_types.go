package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// IPAddressClaimSpec is the pool to allocate an address from. Immutable.
type IPAddressClaimSpec struct {
	// clusterName is the name of the Cluster that the address is for, in the same namespace. When unset, the label
	// ClusterNameLabel may specify it; that is deprecated.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// poolRef references the pool to allocate the address from, in the same namespace.
	// +required
	PoolRef IPPoolReference `json:"poolRef,omitempty,omitzero"`
}

// IPAddressClaimStatus is the result of a claim, set by the IPAM provider.
// +kubebuilder:validation:MinProperties=1
type IPAddressClaimStatus struct {
	// conditions are the current conditions: Ready.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// addressRef references the IPAddress, in the same namespace, once there is one.
	// +optional
	AddressRef IPAddressReference `json:"addressRef,omitempty,omitzero"`

	// deprecated groups what an older API version shows, and controllers no longer use.
	// +optional
	Deprecated *IPAddressClaimDeprecatedStatus `json:"deprecated,omitempty"`
}

// IPAddressReference references an IPAddress in the namespace of the referrer.
type IPAddressReference struct {
	// name is the name of the address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`
}

// IPAddressClaimDeprecatedStatus groups what an older API version shows, and controllers no longer use.
type IPAddressClaimDeprecatedStatus struct {
	// v1beta1 is the status that only v1beta1 has. It is removed together with that version.
	// +optional
	V1Beta1 *IPAddressClaimV1Beta1DeprecatedStatus `json:"v1beta1,omitempty"`
}

// IPAddressClaimV1Beta1DeprecatedStatus is the status that only v1beta1 has.
type IPAddressClaimV1Beta1DeprecatedStatus struct {
	// conditions are the conditions of v1beta1, with severities.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=ipaddressclaims,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Pool Name",type="string",JSONPath=".spec.poolRef.name",description="Name of the pool of the address"
// +kubebuilder:printcolumn:name="Pool Kind",type="string",JSONPath=".spec.poolRef.kind",description="Kind of the pool of the address"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// IPAddressClaim requests an address from a pool.
type IPAddressClaim struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec IPAddressClaimSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status IPAddressClaimStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the IPAddressClaim.
func (i *IPAddressClaim) GetConditions() []metav1.Condition { return i.Status.Conditions }

// SetConditions replaces the conditions of the IPAddressClaim.
func (i *IPAddressClaim) SetConditions(conditions []metav1.Condition) {
	i.Status.Conditions = conditions
}

// GetV1Beta1Conditions returns the conditions that v1beta1 shows.
func (i *IPAddressClaim) GetV1Beta1Conditions() clusterv1.Conditions {
	if i.Status.Deprecated == nil || i.Status.Deprecated.V1Beta1 == nil {
		return nil
	}
	return i.Status.Deprecated.V1Beta1.Conditions
}

// SetV1Beta1Conditions replaces the conditions that v1beta1 shows.
func (i *IPAddressClaim) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	if len(conditions) == 0 && len(i.GetV1Beta1Conditions()) == 0 {
		return
	}
	if i.Status.Deprecated == nil {
		i.Status.Deprecated = &IPAddressClaimDeprecatedStatus{}
	}
	if i.Status.Deprecated.V1Beta1 == nil {
		i.Status.Deprecated.V1Beta1 = &IPAddressClaimV1Beta1DeprecatedStatus{}
	}
	i.Status.Deprecated.V1Beta1.Conditions = conditions
}

// +kubebuilder:object:root=true

// IPAddressClaimList is a list of IPAddressClaims.
type IPAddressClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IPAddressClaim `json:"items"`
}
