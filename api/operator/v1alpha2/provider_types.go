package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=coreproviders,shortName=cacp,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="InstalledVersion",type="string",JSONPath=".status.installedVersion"
// +kubebuilder:printcolumn:name="Installed",type="string",JSONPath=".status.conditions[?(@.type=='ProviderInstalled')].status"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"

// CoreProvider declares the core provider, Cluster API itself. A management cluster has one, named cluster-api.
type CoreProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the provider to install.
	// +optional
	Spec ProviderSpec `json:"spec,omitempty"`

	// status is what is installed.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// GetSpec returns the spec, to read and to change.
func (p *CoreProvider) GetSpec() *ProviderSpec { return &p.Spec }

// GetStatus returns the status, to read and to change.
func (p *CoreProvider) GetStatus() *ProviderStatus { return &p.Status }

// GetV1Beta1Conditions returns the conditions.
func (p *CoreProvider) GetV1Beta1Conditions() clusterv1.Conditions { return p.Status.conditions() }

// SetV1Beta1Conditions sets the conditions.
func (p *CoreProvider) SetV1Beta1Conditions(list clusterv1.Conditions) { p.Status.setConditions(list) }

// +kubebuilder:object:root=true

// CoreProviderList is a list of CoreProviders.
type CoreProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []CoreProvider `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=bootstrapproviders,shortName=cabp,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="InstalledVersion",type="string",JSONPath=".status.installedVersion"
// +kubebuilder:printcolumn:name="Installed",type="string",JSONPath=".status.conditions[?(@.type=='ProviderInstalled')].status"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"

// BootstrapProvider declares a bootstrap provider.
type BootstrapProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the provider to install.
	// +optional
	Spec ProviderSpec `json:"spec,omitempty"`

	// status is what is installed.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// GetSpec returns the spec, to read and to change.
func (p *BootstrapProvider) GetSpec() *ProviderSpec { return &p.Spec }

// GetStatus returns the status, to read and to change.
func (p *BootstrapProvider) GetStatus() *ProviderStatus { return &p.Status }

// GetV1Beta1Conditions returns the conditions.
func (p *BootstrapProvider) GetV1Beta1Conditions() clusterv1.Conditions { return p.Status.conditions() }

// SetV1Beta1Conditions sets the conditions.
func (p *BootstrapProvider) SetV1Beta1Conditions(list clusterv1.Conditions) {
	p.Status.setConditions(list)
}

// +kubebuilder:object:root=true

// BootstrapProviderList is a list of BootstrapProviders.
type BootstrapProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []BootstrapProvider `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=controlplaneproviders,shortName=cacpp,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="InstalledVersion",type="string",JSONPath=".status.installedVersion"
// +kubebuilder:printcolumn:name="Installed",type="string",JSONPath=".status.conditions[?(@.type=='ProviderInstalled')].status"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"

// ControlPlaneProvider declares a control plane provider.
type ControlPlaneProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the provider to install.
	// +optional
	Spec ProviderSpec `json:"spec,omitempty"`

	// status is what is installed.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// GetSpec returns the spec, to read and to change.
func (p *ControlPlaneProvider) GetSpec() *ProviderSpec { return &p.Spec }

// GetStatus returns the status, to read and to change.
func (p *ControlPlaneProvider) GetStatus() *ProviderStatus { return &p.Status }

// GetV1Beta1Conditions returns the conditions.
func (p *ControlPlaneProvider) GetV1Beta1Conditions() clusterv1.Conditions {
	return p.Status.conditions()
}

// SetV1Beta1Conditions sets the conditions.
func (p *ControlPlaneProvider) SetV1Beta1Conditions(list clusterv1.Conditions) {
	p.Status.setConditions(list)
}

// +kubebuilder:object:root=true

// ControlPlaneProviderList is a list of ControlPlaneProviders.
type ControlPlaneProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []ControlPlaneProvider `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=infrastructureproviders,shortName=caip,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="InstalledVersion",type="string",JSONPath=".status.installedVersion"
// +kubebuilder:printcolumn:name="Installed",type="string",JSONPath=".status.conditions[?(@.type=='ProviderInstalled')].status"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"

// InfrastructureProvider declares an infrastructure provider.
type InfrastructureProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the provider to install.
	// +optional
	Spec ProviderSpec `json:"spec,omitempty"`

	// status is what is installed.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// GetSpec returns the spec, to read and to change.
func (p *InfrastructureProvider) GetSpec() *ProviderSpec { return &p.Spec }

// GetStatus returns the status, to read and to change.
func (p *InfrastructureProvider) GetStatus() *ProviderStatus { return &p.Status }

// GetV1Beta1Conditions returns the conditions.
func (p *InfrastructureProvider) GetV1Beta1Conditions() clusterv1.Conditions {
	return p.Status.conditions()
}

// SetV1Beta1Conditions sets the conditions.
func (p *InfrastructureProvider) SetV1Beta1Conditions(list clusterv1.Conditions) {
	p.Status.setConditions(list)
}

// +kubebuilder:object:root=true

// InfrastructureProviderList is a list of InfrastructureProviders.
type InfrastructureProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []InfrastructureProvider `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addonproviders,shortName=caap,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="InstalledVersion",type="string",JSONPath=".status.installedVersion"
// +kubebuilder:printcolumn:name="Installed",type="string",JSONPath=".status.conditions[?(@.type=='ProviderInstalled')].status"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"

// AddonProvider declares an addon provider.
type AddonProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the provider to install.
	// +optional
	Spec ProviderSpec `json:"spec,omitempty"`

	// status is what is installed.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// GetSpec returns the spec, to read and to change.
func (p *AddonProvider) GetSpec() *ProviderSpec { return &p.Spec }

// GetStatus returns the status, to read and to change.
func (p *AddonProvider) GetStatus() *ProviderStatus { return &p.Status }

// GetV1Beta1Conditions returns the conditions.
func (p *AddonProvider) GetV1Beta1Conditions() clusterv1.Conditions { return p.Status.conditions() }

// SetV1Beta1Conditions sets the conditions.
func (p *AddonProvider) SetV1Beta1Conditions(list clusterv1.Conditions) { p.Status.setConditions(list) }

// +kubebuilder:object:root=true

// AddonProviderList is a list of AddonProviders.
type AddonProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []AddonProvider `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=ipamproviders,shortName=caipamp,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="InstalledVersion",type="string",JSONPath=".status.installedVersion"
// +kubebuilder:printcolumn:name="Installed",type="string",JSONPath=".status.conditions[?(@.type=='ProviderInstalled')].status"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"

// IPAMProvider declares an IPAM provider.
type IPAMProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the provider to install.
	// +optional
	Spec ProviderSpec `json:"spec,omitempty"`

	// status is what is installed.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// GetSpec returns the spec, to read and to change.
func (p *IPAMProvider) GetSpec() *ProviderSpec { return &p.Spec }

// GetStatus returns the status, to read and to change.
func (p *IPAMProvider) GetStatus() *ProviderStatus { return &p.Status }

// GetV1Beta1Conditions returns the conditions.
func (p *IPAMProvider) GetV1Beta1Conditions() clusterv1.Conditions { return p.Status.conditions() }

// SetV1Beta1Conditions sets the conditions.
func (p *IPAMProvider) SetV1Beta1Conditions(list clusterv1.Conditions) { p.Status.setConditions(list) }

// +kubebuilder:object:root=true

// IPAMProviderList is a list of IPAMProviders.
type IPAMProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []IPAMProvider `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=runtimeextensionproviders,shortName=carep,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="InstalledVersion",type="string",JSONPath=".status.installedVersion"
// +kubebuilder:printcolumn:name="Installed",type="string",JSONPath=".status.conditions[?(@.type=='ProviderInstalled')].status"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"

// RuntimeExtensionProvider declares a runtime extension.
type RuntimeExtensionProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the provider to install.
	// +optional
	Spec ProviderSpec `json:"spec,omitempty"`

	// status is what is installed.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// GetSpec returns the spec, to read and to change.
func (p *RuntimeExtensionProvider) GetSpec() *ProviderSpec { return &p.Spec }

// GetStatus returns the status, to read and to change.
func (p *RuntimeExtensionProvider) GetStatus() *ProviderStatus { return &p.Status }

// GetV1Beta1Conditions returns the conditions.
func (p *RuntimeExtensionProvider) GetV1Beta1Conditions() clusterv1.Conditions {
	return p.Status.conditions()
}

// SetV1Beta1Conditions sets the conditions.
func (p *RuntimeExtensionProvider) SetV1Beta1Conditions(list clusterv1.Conditions) {
	p.Status.setConditions(list)
}

// +kubebuilder:object:root=true

// RuntimeExtensionProviderList is a list of RuntimeExtensionProviders.
type RuntimeExtensionProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items of the list.
	Items []RuntimeExtensionProvider `json:"items"`
}
