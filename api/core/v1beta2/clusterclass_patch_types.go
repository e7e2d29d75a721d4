package v1beta2

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ClusterClassPatch changes the templates of a class for one cluster: either with inline JSON patches, or with an
// extension.
type ClusterClassPatch struct {
	// name identifies the patch: unique in the class, and not "inline".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// description is the purpose of the patch.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// enabledIf is a Go text template over the variables; the patch applies only if it renders "true". When unset, it always
	// applies. Not evaluated for external patches.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	EnabledIf string `json:"enabledIf,omitempty"`

	// definitions are JSON patches with the templates that they apply to. Mutually exclusive with external.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Definitions []PatchDefinition `json:"definitions,omitempty"`

	// external delegates patching to an extension. Mutually exclusive with definitions. Requires the feature gate
	// RuntimeSDK.
	// +optional
	External *ExternalPatchDefinition `json:"external,omitempty"`
}

// PatchDefinition is a list of JSON patches with the templates that they apply to.
type PatchDefinition struct {
	// selector chooses the templates.
	// +required
	Selector PatchSelector `json:"selector,omitempty,omitzero"`

	// jsonPatches are applied in the order of the list.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	JSONPatches []JSONPatch `json:"jsonPatches,omitempty"`
}

// PatchSelector chooses templates by kind and by where the class uses them.
type PatchSelector struct {
	// apiVersion is the group and version of the template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[a-z]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`
	Kind string `json:"kind,omitempty"`

	// matchResources selects templates by where the class uses them. At least one of its fields must be set.
	// +required
	MatchResources PatchSelectorMatch `json:"matchResources,omitempty,omitzero"`
}

// PatchSelectorMatch selects templates by where the class uses them. Any match is sufficient.
// +kubebuilder:validation:MinProperties=1
type PatchSelectorMatch struct {
	// controlPlane selects the template of the control plane object and that of its machines' infrastructure.
	// +optional
	ControlPlane *bool `json:"controlPlane,omitempty"`

	// infrastructureCluster selects the template of the infrastructure object.
	// +optional
	InfrastructureCluster *bool `json:"infrastructureCluster,omitempty"`

	// machineDeploymentClass selects templates of MachineDeployment classes.
	// +optional
	MachineDeploymentClass *PatchSelectorMatchMachineDeploymentClass `json:"machineDeploymentClass,omitempty"`

	// machinePoolClass selects templates of MachinePool classes.
	// +optional
	MachinePoolClass *PatchSelectorMatchMachinePoolClass `json:"machinePoolClass,omitempty"`
}

// PatchSelectorMatchMachineDeploymentClass selects MachineDeployment classes.
type PatchSelectorMatchMachineDeploymentClass struct {
	// names are class names, with at most one "*" each, alone, at the start or at the end, for any text.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	Names []string `json:"names,omitempty"`
}

// PatchSelectorMatchMachinePoolClass selects MachinePool classes.
type PatchSelectorMatchMachinePoolClass struct {
	// names are class names, with at most one "*" each, alone, at the start or at the end, for any text.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	Names []string `json:"names,omitempty"`
}

// JSONPatch is an operation of RFC 6902 on a template.
type JSONPatch struct {
	// op is add, replace or remove.
	// +required
	// +kubebuilder:validation:Enum=add;replace;remove
	Op string `json:"op,omitempty"`

	// path is a JSON pointer that starts with /spec/, or with /metadata/labels or /metadata/annotations. An array index may
	// only be used with add, and must be 0 (prepend) or - (append).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// value is any JSON value. add and replace require either value or valueFrom; remove requires neither.
	// +optional
	Value *apiextensionsv1.JSON `json:"value,omitempty"`

	// valueFrom computes the value from variables.
	// +optional
	ValueFrom *JSONPatchValue `json:"valueFrom,omitempty"`
}

// JSONPatchValue computes a value. Exactly one of its fields must be set.
type JSONPatchValue struct {
	// variable is the name of a variable of the class, or the path of one under "builtin", to take the value of.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Variable string `json:"variable,omitempty"`

	// template is a Go text template over the variables that renders YAML or JSON.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Template string `json:"template,omitempty"`
}

// ExternalPatchDefinition references extensions, each as <handler>.<ExtensionConfig>. generatePatchesExtension or
// validateTopologyExtension must be set.
type ExternalPatchDefinition struct {
	// generatePatchesExtension returns patches of the templates.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	GeneratePatchesExtension string `json:"generatePatchesExtension,omitempty"`

	// validateTopologyExtension validates the templates after all patches.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ValidateTopologyExtension string `json:"validateTopologyExtension,omitempty"`

	// discoverVariablesExtension returns the variables that the extension defines.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	DiscoverVariablesExtension string `json:"discoverVariablesExtension,omitempty"`

	// settings are sent with each call, and override individual keys of the ExtensionConfig's settings.
	// +optional
	Settings map[string]string `json:"settings,omitempty"`
}
