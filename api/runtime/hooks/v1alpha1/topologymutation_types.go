package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
)

// Variable is the value of a variable.
type Variable struct {
	// name is the name of the variable.
	Name string `json:"name"`

	// value is the value of the variable.
	Value apiextensionsv1.JSON `json:"value"`
}

// HolderReference references the object that refers to an object created from a template.
type HolderReference struct {
	// apiVersion is the API version of the holder.
	APIVersion string `json:"apiVersion"`

	// kind is the kind of the holder.
	Kind string `json:"kind"`

	// namespace is the namespace of the holder.
	Namespace string `json:"namespace"`

	// name is the name of the holder.
	Name string `json:"name"`

	// fieldPath is the path of the field of the holder that contains the reference, such as spec.infrastructureRef.
	FieldPath string `json:"fieldPath"`
}

var _ RequestObject = &GeneratePatchesRequest{}

// +kubebuilder:object:root=true

// GeneratePatchesRequest is the request of the hook GeneratePatches.
type GeneratePatchesRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// variables are the values of the Cluster's variables, and builtin variables, for all items.
	Variables []Variable `json:"variables"`

	// items are the templates to patch.
	Items []GeneratePatchesRequestItem `json:"items"`
}

// GeneratePatchesRequestItem is a template to patch.
type GeneratePatchesRequestItem struct {
	// uid identifies the item in this request; responses repeat it.
	UID types.UID `json:"uid"`

	// holderReference references the object that refers to the object created from the template.
	HolderReference HolderReference `json:"holderReference"`

	// object is the template, with the results of earlier patches.
	Object runtime.RawExtension `json:"object"`

	// variables are additional values, or override those of the request, for this item.
	Variables []Variable `json:"variables"`
}

var _ ResponseObject = &GeneratePatchesResponse{}

// +kubebuilder:object:root=true

// GeneratePatchesResponse is the response of the hook GeneratePatches.
type GeneratePatchesResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonResponse are the fields of all responses.
	CommonResponse `json:",inline"`

	// items are the patches, in the order in which they are applied. Templates without a patch stay as they are.
	Items []GeneratePatchesResponseItem `json:"items"`
}

// GeneratePatchesResponseItem is a patch for a template.
type GeneratePatchesResponseItem struct {
	// uid is the uid of the item in the request.
	UID types.UID `json:"uid"`

	// patchType is JSONPatch or JSONMergePatch.
	PatchType PatchType `json:"patchType"`

	// patch is the patch. Only changes of spec have an effect.
	Patch []byte `json:"patch"`
}

// PatchType is the format of a patch.
// +kubebuilder:validation:Enum=JSONPatch;JSONMergePatch
type PatchType string

const (
	// JSONPatchType is RFC 6902.
	JSONPatchType PatchType = "JSONPatch"
	// JSONMergePatchType is RFC 7396.
	JSONMergePatchType PatchType = "JSONMergePatch"
)

// GeneratePatches is called to patch the templates of a Cluster's topology.
func GeneratePatches(*GeneratePatchesRequest, *GeneratePatchesResponse) {}

var _ RequestObject = &ValidateTopologyRequest{}

// +kubebuilder:object:root=true

// ValidateTopologyRequest is the request of the hook ValidateTopology.
type ValidateTopologyRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// variables are the values of the Cluster's variables, and builtin variables, for all items.
	Variables []Variable `json:"variables"`

	// items are the templates, after all patches.
	Items []*ValidateTopologyRequestItem `json:"items"`
}

// ValidateTopologyRequestItem is a template after all patches.
type ValidateTopologyRequestItem struct {
	// holderReference references the object that refers to the object created from the template.
	HolderReference HolderReference `json:"holderReference"`

	// object is the template.
	Object runtime.RawExtension `json:"object"`

	// variables are additional values, or override those of the request, for this item.
	Variables []Variable `json:"variables"`
}

var _ ResponseObject = &ValidateTopologyResponse{}

// +kubebuilder:object:root=true

// ValidateTopologyResponse is the response of the hook ValidateTopology.
type ValidateTopologyResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonResponse are the fields of all responses.
	CommonResponse `json:",inline"`
}

// ValidateTopology is called to validate the templates of a Cluster's topology after all patches.
func ValidateTopology(*ValidateTopologyRequest, *ValidateTopologyResponse) {}

var _ RequestObject = &DiscoverVariablesRequest{}

// +kubebuilder:object:root=true

// DiscoverVariablesRequest is the request of the hook DiscoverVariables.
type DiscoverVariablesRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`
}

var _ ResponseObject = &DiscoverVariablesResponse{}

// +kubebuilder:object:root=true

// DiscoverVariablesResponse is the response of the hook DiscoverVariables.
type DiscoverVariablesResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonResponse are the fields of all responses.
	CommonResponse `json:",inline"`

	// variables are the definitions of the variables that the patch uses.
	Variables []clusterv1.ClusterClassVariable `json:"variables"`
}

// DiscoverVariables is called for the definitions of the variables that an external patch uses.
func DiscoverVariables(*DiscoverVariablesRequest, *DiscoverVariablesResponse) {}

func registerTopologyMutationHooks(b *runtimecatalog.Builder) {
	register := func(hook runtimecatalog.Hook, summary, description string) {
		b.RegisterHook(hook, &runtimecatalog.HookMeta{Tags: []string{"Topology Mutation Hook"}, Summary: summary, Description: description})
	}
	register(GeneratePatches, "Generates patches for the templates of a topology",
		"Called for each external patch of a ClusterClass when the topology of a Cluster is reconciled. Responses must be deterministic.")
	register(ValidateTopology, "Validates the templates of a topology after all patches",
		"Called for each external patch of a ClusterClass after the patches of the class were applied.")
	b.RegisterHook(DiscoverVariables, &runtimecatalog.HookMeta{
		Tags: []string{"Topology Mutation Hook"}, Summary: "Lists the variables of an external patch",
		Description:    "Called for each external patch of a ClusterClass when the class is reconciled. Responses must be deterministic.",
		PayloadVersion: clusterv1.GroupVersion.Version,
	})
}
