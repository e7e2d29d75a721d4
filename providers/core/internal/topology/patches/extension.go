package patches

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Extension serves external patches. Implementations call runtime extensions.
type Extension interface {
	// GeneratePatches calls a handler for patches. They are applied in the order returned.
	GeneratePatches(ctx context.Context, call Call) ([]Patch, error)
	// ValidateTopology calls a handler to validate the patched templates. An error rejects them.
	ValidateTopology(ctx context.Context, call Call) error
}

// Call is a call of an extension.
type Call struct {
	// Handler is the handler, as in the class: "<handler>.<ExtensionConfig>".
	Handler string
	// Settings are the settings of the patch.
	Settings map[string]string
	// Cluster is the Cluster of the topology. It must not be changed.
	Cluster *clusterv1.Cluster
	// Variables are the values of the Cluster that are visible to the patch, and the builtin variable.
	Variables []Variable
	// Items are the templates, with the results of earlier patches.
	Items []Item
}

// Variable is the name of a variable and its value.
type Variable struct {
	Name  string
	Value apiextensionsv1.JSON
}

// Item is one template of a topology.
type Item struct {
	// Holder is the object that refers to the object created from the template.
	Holder Holder
	// Object is the template as JSON.
	Object []byte
	// Variables override or extend the variables of the call. The builtin variable has only the fields that the call's
	// does not have.
	Variables []Variable
}

// Holder is an object, and its field that contains a reference.
type Holder struct{ APIVersion, Kind, Namespace, Name, FieldPath string }

func (h Holder) at(fieldPath string) Holder {
	h.FieldPath = fieldPath
	return h
}

// PatchType is the format of a Patch.
type PatchType string

const (
	// JSONPatch is RFC 6902.
	JSONPatch PatchType = "JSONPatch"
	// JSONMergePatch is RFC 7396.
	JSONMergePatch PatchType = "JSONMergePatch"
)

// Patch is a patch for one template, returned by an extension.
type Patch struct {
	// Item is the index of the template in the call.
	Item int
	Type PatchType
	// Patch is the patch itself. Changes outside of spec, metadata.labels and metadata.annotations are dropped.
	Patch []byte
}
