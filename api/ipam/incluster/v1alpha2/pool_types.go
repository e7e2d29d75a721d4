package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InClusterIPPoolSpec is the addresses of a pool, and the network that they belong to.
type InClusterIPPoolSpec struct {
	// addresses are the addresses of the pool: single addresses such as 10.0.0.5, ranges such as 10.0.0.10-10.0.0.50, and CIDR
	// blocks such as 10.0.1.0/24. All of them are IPv4, or all of them are IPv6. An address in use cannot be removed.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=128
	Addresses []string `json:"addresses"`

	// prefix is the length of the network's prefix in bits, which every IPAddress of the pool gets: 1 to 32 for IPv4, 1 to 128 for
	// IPv6.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Prefix int `json:"prefix"`

	// gateway is the address of the network's gateway, which every IPAddress of the pool gets. It is never allocated.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Gateway string `json:"gateway,omitempty"`

	// allocateReservedIPAddresses allows allocating the first address of a network, which is the network address of IPv4 and the
	// subnet-router anycast address of IPv6, and the last address of an IPv4 network, which is the broadcast address.
	// +optional
	AllocateReservedIPAddresses bool `json:"allocateReservedIPAddresses,omitempty"`

	// excludedAddresses are addresses, ranges and CIDR blocks that are not allocated although they are in addresses.
	// +optional
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=128
	ExcludedAddresses []string `json:"excludedAddresses,omitempty"`
}

// InClusterIPPoolStatus is the usage of a pool.
type InClusterIPPoolStatus struct {
	// ipAddresses are the numbers of addresses of the pool.
	// +optional
	Addresses *InClusterIPPoolStatusIPAddresses `json:"ipAddresses,omitempty"`

	// reservations are the addresses of claims whose IPAddress may not exist yet. Only the provider uses them.
	// +optional
	Reservations *Reservations `json:"reservations,omitempty"`

	// conditions are the current conditions, set by the controller.
	// +optional
	Conditions clusterv1.Conditions `json:"conditions,omitempty"`
}

// InClusterIPPoolStatusIPAddresses are the numbers of addresses of a pool. Numbers above 9223372036854775807 are stated as that.
type InClusterIPPoolStatusIPAddresses struct {
	// total is the number of addresses that the pool can allocate: without excluded and reserved addresses and the gateway.
	Total int64 `json:"total"`

	// free is the number of these addresses that are not allocated.
	Free int64 `json:"free"`

	// used is the number of allocated addresses, including those that are out of range.
	Used int64 `json:"used"`

	// outOfRange is the number of allocated addresses that the pool could no longer allocate.
	OutOfRange int64 `json:"outOfRange"`
}

// Reservations are addresses that a pool has given to claims.
type Reservations struct {
	// sequence is the number of changes.
	Sequence int64 `json:"sequence"`

	// writer identifies the process that made the latest change.
	Writer string `json:"writer"`

	// items are the reservations, in the order of their claims.
	// +optional
	// +listType=atomic
	Items []Reservation `json:"items,omitempty"`
}

// Reservation is the address of a claim.
type Reservation struct {
	// address is the address.
	Address string `json:"address"`

	// namespace is that of the IPAddressClaim.
	Namespace string `json:"namespace"`

	// name is that of the IPAddressClaim.
	Name string `json:"name"`

	// uid is that of the IPAddressClaim.
	UID types.UID `json:"uid"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move-hierarchy="
// +kubebuilder:resource:path=inclusterippools,scope=Namespaced,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Addresses",type="string",JSONPath=".spec.addresses",description="Addresses of the pool"
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.ipAddresses.total",description="Number of addresses that the pool can allocate"
// +kubebuilder:printcolumn:name="Free",type="integer",JSONPath=".status.ipAddresses.free",description="Number of addresses that are not allocated"
// +kubebuilder:printcolumn:name="Used",type="integer",JSONPath=".status.ipAddresses.used",description="Number of allocated addresses"

// InClusterIPPool is a pool of addresses for the IPAddressClaims of its namespace.
type InClusterIPPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InClusterIPPoolSpec   `json:"spec,omitempty"`
	Status InClusterIPPoolStatus `json:"status,omitempty"`
}

// PoolSpec returns the spec.
func (p *InClusterIPPool) PoolSpec() *InClusterIPPoolSpec { return &p.Spec }

// PoolStatus returns the status.
func (p *InClusterIPPool) PoolStatus() *InClusterIPPoolStatus { return &p.Status }

// GetV1Beta1Conditions returns the conditions.
func (p *InClusterIPPool) GetV1Beta1Conditions() clusterv1.Conditions { return p.Status.Conditions }

// SetV1Beta1Conditions replaces the conditions.
func (p *InClusterIPPool) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	p.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// InClusterIPPoolList is a list of InClusterIPPools.
type InClusterIPPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InClusterIPPool `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="clusterctl.cluster.x-k8s.io/move="
// +kubebuilder:resource:path=globalinclusterippools,scope=Cluster,categories=cluster-api
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Addresses",type="string",JSONPath=".spec.addresses",description="Addresses of the pool"
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.ipAddresses.total",description="Number of addresses that the pool can allocate"
// +kubebuilder:printcolumn:name="Free",type="integer",JSONPath=".status.ipAddresses.free",description="Number of addresses that are not allocated"
// +kubebuilder:printcolumn:name="Used",type="integer",JSONPath=".status.ipAddresses.used",description="Number of allocated addresses"

// GlobalInClusterIPPool is a pool of addresses for the IPAddressClaims of all namespaces.
type GlobalInClusterIPPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InClusterIPPoolSpec   `json:"spec,omitempty"`
	Status InClusterIPPoolStatus `json:"status,omitempty"`
}

// PoolSpec returns the spec.
func (p *GlobalInClusterIPPool) PoolSpec() *InClusterIPPoolSpec { return &p.Spec }

// PoolStatus returns the status.
func (p *GlobalInClusterIPPool) PoolStatus() *InClusterIPPoolStatus { return &p.Status }

// GetV1Beta1Conditions returns the conditions.
func (p *GlobalInClusterIPPool) GetV1Beta1Conditions() clusterv1.Conditions {
	return p.Status.Conditions
}

// SetV1Beta1Conditions replaces the conditions.
func (p *GlobalInClusterIPPool) SetV1Beta1Conditions(conditions clusterv1.Conditions) {
	p.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// GlobalInClusterIPPoolList is a list of GlobalInClusterIPPools.
type GlobalInClusterIPPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GlobalInClusterIPPool `json:"items"`
}
