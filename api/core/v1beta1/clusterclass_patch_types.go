package v1beta1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ClusterClassPatch changes the templates of a class for one cluster: either with inline JSON patches, or with an
// extension.
type ClusterClassPatch struct {
	// name identifies the patch: unique in the class, and not "inline".
	Name string `json:"name"`

	// description is the purpose of the patch.
	// +optional
	Description string `json:"description,omitempty"`

	// enabledIf is a Go text template over the variables; the patch applies only if it renders "true". When unset, it
	// always applies. Not evaluated for external patches.
	// +optional
	EnabledIf *string `json:"enabledIf,omitempty"`

	// definitions are JSON patches with the templates that they apply to. Mutually exclusive with external.
	// +optional
	Definitions []PatchDefinition `json:"definitions,omitempty"`

	// external delegates patching to an extension. Mutually exclusive with definitions. Requires the feature gate
	// RuntimeSDK.
	// +optional
	External *ExternalPatchDefinition `json:"external,omitempty"`
}

// PatchDefinition is a list of JSON patches with the templates that they apply to.
type PatchDefinition struct {
	// selector chooses the templates.
	Selector PatchSelector `json:"selector"`

	// jsonPatches are applied in the order of the list.
	JSONPatches []JSONPatch `json:"jsonPatches"`
}

// PatchSelector chooses templates by kind and by where the class uses them.
type PatchSelector struct {
	// apiVersion is the group and version of the template.
	APIVersion string `json:"apiVersion"`

	// kind is the kind of the template.
	Kind string `json:"kind"`

	// matchResources selects templates by where the class uses them. At least one of its fields must be set.
	MatchResources PatchSelectorMatch `json:"matchResources"`
}

// PatchSelectorMatch selects templates by where the class uses them. Any match is sufficient.
type PatchSelectorMatch struct {
	// controlPlane selects the template of the control plane object and that of its machines' infrastructure.
	// +optional
	ControlPlane bool `json:"controlPlane,omitempty"`

	// infrastructureCluster selects the template of the infrastructure object.
	// +optional
	InfrastructureCluster bool `json:"infrastructureCluster,omitempty"`

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
	Names []string `json:"names,omitempty"`
}

// PatchSelectorMatchMachinePoolClass selects MachinePool classes.
type PatchSelectorMatchMachinePoolClass struct {
	// names are class names, with at most one "*" each, alone, at the start or at the end, for any text.
	// +optional
	Names []string `json:"names,omitempty"`
}

// JSONPatch is an operation of RFC 6902 on the spec of a template.
type JSONPatch struct {
	// op is add, replace or remove.
	Op string `json:"op"`

	// path is a JSON pointer that starts with /spec/. An array index may only be used with add, and must be 0 (prepend)
	// or - (append).
	Path string `json:"path"`

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
	Variable *string `json:"variable,omitempty"`

	// template is a Go text template over the variables that renders YAML or JSON.
	// +optional
	Template *string `json:"template,omitempty"`
}

// ExternalPatchDefinition references extensions, each as <handler>.<ExtensionConfig>. generateExtension or
// validateExtension must be set.
type ExternalPatchDefinition struct {
	// generateExtension returns patches of the templates.
	// +optional
	GenerateExtension *string `json:"generateExtension,omitempty"`

	// validateExtension validates the templates after all patches.
	// +optional
	ValidateExtension *string `json:"validateExtension,omitempty"`

	// discoverVariablesExtension returns the variables that the extension defines.
	// +optional
	DiscoverVariablesExtension *string `json:"discoverVariablesExtension,omitempty"`

	// settings are sent with each call, and override individual keys of the ExtensionConfig's settings.
	// +optional
	Settings map[string]string `json:"settings,omitempty"`
}
