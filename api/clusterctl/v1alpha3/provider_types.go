package v1alpha3

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterAPIProviderName is the name of the core provider.
const ClusterAPIProviderName = "cluster-api"

// ProviderType is the type of a provider.
type ProviderType string

const (
	// CoreProviderType is Cluster API itself.
	CoreProviderType ProviderType = "CoreProvider"
	// BootstrapProviderType generates the data that turns machines into Nodes.
	BootstrapProviderType ProviderType = "BootstrapProvider"
	// ControlPlaneProviderType runs control planes.
	ControlPlaneProviderType ProviderType = "ControlPlaneProvider"
	// InfrastructureProviderType provides machines and cluster infrastructure.
	InfrastructureProviderType ProviderType = "InfrastructureProvider"
	// IPAMProviderType allocates IP addresses.
	IPAMProviderType ProviderType = "IPAMProvider"
	// RuntimeExtensionProviderType implements runtime hooks.
	RuntimeExtensionProviderType ProviderType = "RuntimeExtensionProvider"
	// AddonProviderType installs add-ons in workload clusters.
	AddonProviderType ProviderType = "AddonProvider"
	// ProviderTypeUnknown is used for all other values.
	ProviderTypeUnknown ProviderType = ""
)

// Order is the position of the type in the install order: 0 comes first, unknown types last.
func (p ProviderType) Order() int {
	switch p {
	case CoreProviderType:
		return 0
	case BootstrapProviderType:
		return 1
	case ControlPlaneProviderType:
		return 2
	case InfrastructureProviderType:
		return 3
	case IPAMProviderType:
		return 4
	case RuntimeExtensionProviderType:
		return 5
	case AddonProviderType:
		return 6
	default:
		return 99
	}
}

// ManifestLabel returns the value of the label cluster.x-k8s.io/provider on the components of a provider: its name,
// prefixed with the type for all but the core provider.
func ManifestLabel(name string, providerType ProviderType) string {
	switch providerType {
	case BootstrapProviderType:
		return "bootstrap-" + name
	case ControlPlaneProviderType:
		return "control-plane-" + name
	case InfrastructureProviderType:
		return "infrastructure-" + name
	case IPAMProviderType:
		return "ipam-" + name
	case RuntimeExtensionProviderType:
		return "runtime-extension-" + name
	case AddonProviderType:
		return "addon-" + name
	default:
		return name
	}
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=providers,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".type"
// +kubebuilder:printcolumn:name="Provider",type="string",JSONPath=".providerName"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".version"

// Provider records that a provider is installed in the namespace of this object, whose name is the provider's manifest
// label.
type Provider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// providerName is the name of the provider, such as docker.
	// +optional
	ProviderName string `json:"providerName,omitempty"`

	// type is the type of the provider, such as InfrastructureProvider.
	// +optional
	Type string `json:"type,omitempty"`

	// version is the installed version, such as v1.7.0.
	// +optional
	Version string `json:"version,omitempty"`

	// watchedNamespace is the only namespace that the provider watches, and empty for all. Kept for compatibility: it is
	// no longer set.
	// +optional
	WatchedNamespace string `json:"watchedNamespace,omitempty"`
}

// GetProviderType returns the type, or ProviderTypeUnknown for an unknown value.
func (p *Provider) GetProviderType() ProviderType {
	switch t := ProviderType(p.Type); t {
	case CoreProviderType, BootstrapProviderType, ControlPlaneProviderType, InfrastructureProviderType,
		IPAMProviderType, RuntimeExtensionProviderType, AddonProviderType:
		return t
	default:
		return ProviderTypeUnknown
	}
}

// ManifestLabel returns the value of the label cluster.x-k8s.io/provider on the provider's components.
func (p *Provider) ManifestLabel() string {
	return ManifestLabel(p.ProviderName, p.GetProviderType())
}

// InstanceName returns namespace/name, which is unique.
func (p *Provider) InstanceName() string {
	return p.Namespace + "/" + p.Name
}

// SameAs is true if both are the same provider, regardless of version and namespace.
func (p *Provider) SameAs(other Provider) bool {
	return p.ProviderName == other.ProviderName && p.Type == other.Type
}

// +kubebuilder:object:root=true

// ProviderList is a list of Providers.
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provider `json:"items"`
}
