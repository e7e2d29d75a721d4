package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// PatchTypes are the media types of patches.
var PatchTypes = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyPatchType),
}

// ApplyPatch applies a patch to an object, both as JSON.
func ApplyPatch(t types.PatchType, original, patch []byte, gvk schema.GroupVersionKind) ([]byte, error) {
	switch t {
	case types.JSONPatchType:
		return applyJSONPatch(original, patch)
	case types.MergePatchType:
		return applyMergePatch(original, patch)
	case types.StrategicMergePatchType:
		typed, err := scheme.Scheme.New(gvk)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		patched, err := mergeStrategically(original, patch, typed)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("apply strategic merge patch: %v", err))
		}
		return patched, nil
	}
	return nil, UnsupportedMediaType(string(t), PatchTypes...)
}

// mergeStrategically turns panics of the library, which some malformed patches cause, into errors.
func mergeStrategically(original, patch []byte, typed runtime.Object) (patched []byte, err error) {
	defer failsafe.Recover("applying a strategic merge patch", &err)
	return strategicpatch.StrategicMergePatch(original, patch, typed)
}

// applyMergePatch rejects patches that are not objects, as a real API server does. According to the RFC they replace the
// whole object.
func applyMergePatch(original, patch []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(patch, &fields); err != nil || fields == nil {
		return nil, apierrors.NewBadRequest("apply merge patch: the patch must be an object")
	}
	patched, err := jsonpatch.MergePatch(original, patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("apply merge patch: %v", err))
	}
	return patched, nil
}

// Limits of a JSON patch: its operations, as in a real API server, and the copied bytes, which double with each copy of a
// copy.
const (
	maxPatchOperations = 10000
	maxPatchCopies     = 4 << 20
)

func applyJSONPatch(original, patch []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode JSON patch: %v", err))
	}
	if len(operations) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the JSON patch has more than %d operations", maxPatchOperations))
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxPatchCopies
	patched, err := operations.ApplyWithOptions(original, options)
	if tooLarge := (*jsonpatch.AccumulatedCopySizeError)(nil); errors.As(err, &tooLarge) {
		return nil, apierrors.NewRequestEntityTooLargeError("the JSON patch copies too much data: " + err.Error())
	}
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", store.Resource{}, "", err.Error(), 0, false)
	}
	return patched, nil
}

// Protobuf is the media type of objects that are encoded with Protobuf.
const Protobuf = "application/vnd.kubernetes.protobuf"

// UnsupportedMediaType is the error for a body of another media type.
func UnsupportedMediaType(found string, expected ...string) error {
	if len(expected) == 0 {
		expected = []string{"application/json", "application/yaml", Protobuf}
	}
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", store.Resource{}, "",
		fmt.Sprintf("the body of the request was in an unknown format (%s) - accepted media types include: %s",
			found, strings.Join(expected, ", ")), 0, false)
}
