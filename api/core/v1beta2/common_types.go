package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TemplateSuffix is the suffix of the kind of every template; the kind without it is the kind of the objects cloned from
// the template.
const TemplateSuffix = "Template"

// ClusterSecretType is the type of Secrets that belong to one Cluster: kubeconfig, certificates, bootstrap data.
const ClusterSecretType corev1.SecretType = "cluster.x-k8s.io/secret"

// ContractVersionedObjectReference references an object of a provider in the namespace of the referrer. The API version
// is not part of
// it: it is the newest one that implements a contract we support, according to the labels of the
// CustomResourceDefinition.
type ContractVersionedObjectReference struct {
	// kind is the kind of the object: letters, digits and hyphens.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`
	Kind string `json:"kind,omitempty"`

	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`

	// apiGroup is the API group of the kind, such as infrastructure.cluster.x-k8s.io.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	APIGroup string `json:"apiGroup,omitempty"`
}

// IsDefined reports whether any field of the reference is set.
func (r *ContractVersionedObjectReference) IsDefined() bool {
	return r != nil && *r != ContractVersionedObjectReference{}
}

// GroupKind returns the group and kind of the object.
func (r *ContractVersionedObjectReference) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.APIGroup, Kind: r.Kind}
}

// ObjectMeta is the metadata that a template sets on its objects.
// +kubebuilder:validation:MinProperties=1
type ObjectMeta struct {
	// labels are set on every object created from the template.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are set on every object created from the template.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ConditionPolarity is which status of a condition is the healthy one.
type ConditionPolarity string

const (
	// PositivePolarityCondition means that True is healthy. It is the default.
	PositivePolarityCondition ConditionPolarity = "Positive"
	// NegativePolarityCondition means that False is healthy.
	NegativePolarityCondition ConditionPolarity = "Negative"
)

// StatusVersion is a Kubernetes version with the number of machines that have it.
type StatusVersion struct {
	// version is the version of the Nodes' kubelets, or the desired version of machines without a Node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`

	// replicas is the number of machines with this version.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Replicas *int32 `json:"replicas,omitempty"`
}

// MachineAddressType is the type of a MachineAddress.
// +kubebuilder:validation:Enum=Hostname;ExternalIP;InternalIP;ExternalDNS;InternalDNS
type MachineAddressType string

const (
	// MachineHostName is the host name of the machine in its infrastructure.
	MachineHostName MachineAddressType = "Hostname"
	// MachineExternalIP is an address reachable from outside the machine's own network.
	MachineExternalIP MachineAddressType = "ExternalIP"
	// MachineInternalIP is an address reachable from inside the machine's own network.
	MachineInternalIP MachineAddressType = "InternalIP"
	// MachineExternalDNS is a name that resolves to an external address of the machine.
	MachineExternalDNS MachineAddressType = "ExternalDNS"
	// MachineInternalDNS is a name that resolves to an internal address of the machine.
	MachineInternalDNS MachineAddressType = "InternalDNS"
)

// MachineAddress is one address of a machine.
type MachineAddress struct {
	// type is one of Hostname, ExternalIP, InternalIP, ExternalDNS, InternalDNS.
	// +required
	Type MachineAddressType `json:"type,omitempty"`

	// address is the IP address or name itself.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Address string `json:"address,omitempty"`
}

// MachineAddresses is the list of a machine's addresses, set by its infrastructure provider.
// +kubebuilder:validation:MaxItems=256
// +listType=atomic
type MachineAddresses []MachineAddress

// MachineNamingSpec defines the names of new machines.
// +kubebuilder:validation:MinProperties=1
type MachineNamingSpec struct {
	// template is a Go text template of the name. It can use .cluster.name, .machineSet.name and .random, five random
	// characters, which it must contain. A name longer than 63 characters is truncated to 58, and five random ones are
	// appended. When unset, "{{ .machineSet.name }}-{{ .random }}".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Template string `json:"template,omitempty"`
}

// isSet reports whether a value differs from the zero value.
func isSet[T any](value T) bool { return !equality.Semantic.DeepEqual(value, *new(T)) }
