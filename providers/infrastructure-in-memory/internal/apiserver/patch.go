package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/sdk/expansion"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

var patchTypes = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyPatchType),
}

func (c *call) patch() error {
	body, mediaType, err := c.readBody()
	if err != nil {
		return err
	}
	if types.PatchType(mediaType) == types.ApplyPatchType {
		return c.apply(body)
	}
	if mediaType != string(types.JSONPatchType) {
		// Merge patches may be YAML.
		if body, err = toJSON(body); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("decode patch: %v", err))
		}
	}
	patched, err := c.group.Update(c.key(), c.writeOptions(), func(current *store.Object) (*unstructured.Unstructured, error) {
		text, err := applyPatch(types.PatchType(mediaType), current.Raw(), body, c.resource.gvk)
		if err != nil {
			return nil, err
		}
		wanted, err := c.conform(text)
		if err != nil {
			return nil, err
		}
		return c.succeed(current.Unstructured(), wanted), nil
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, patched)
}

// conform converts a patched object back to its kind.
func (c *call) conform(text []byte) (*unstructured.Unstructured, error) {
	decoded, err := c.decodeJSON(text, c.resource.gvk)
	if err != nil {
		return nil, err
	}
	o := decoded.(typedObject) // All stored kinds have metadata.
	if err := c.prepareUpdate(o); err != nil {
		return nil, err
	}
	return canonical(o, c.resource.gvk)
}

// applyPatch applies a patch to an object, both as JSON.
func applyPatch(t types.PatchType, original, patch []byte, gvk schema.GroupVersionKind) ([]byte, error) {
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
	return nil, unsupportedMediaType(string(t), patchTypes...)
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

// apply is server-side apply.
func (c *call) apply(body []byte) error {
	if c.query.Get("fieldManager") == "" {
		return apierrors.NewBadRequest("PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for apply patch")
	}
	wanted, err := c.decodeApply(body)
	if err != nil {
		return err
	}
	for {
		applied, err := c.group.Update(c.key(), c.writeOptions(), func(current *store.Object) (*unstructured.Unstructured, error) {
			return c.applyTo(current.Unstructured(), wanted)
		})
		code := http.StatusOK
		if apierrors.IsNotFound(err) {
			code = http.StatusCreated
			applied, err = c.applyNew(wanted)
			if apierrors.IsAlreadyExists(err) {
				continue // created concurrently
			}
		}
		if err != nil {
			return err
		}
		return c.answer(code, applied)
	}
}

func (c *call) decodeApply(body []byte) (*unstructured.Unstructured, error) {
	if err := expansion.Check(body, maxBody); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode apply patch: %v", err))
	}
	text, err := yaml.YAMLToJSONStrict(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode apply patch: %v", err))
	}
	// Decoding into the Go type detects unknown fields and wrong types. The patch itself must not be defaulted by it: the
	// manager would own empty fields that it did not send.
	if _, err := c.decodeJSON(text, c.resource.gvk); err != nil {
		return nil, err
	}
	wanted := &unstructured.Unstructured{}
	if err := wanted.UnmarshalJSON(text); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode apply patch: %v", err))
	}
	if wanted.GetName() != "" && wanted.GetName() != c.name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", wanted.GetName(), c.name))
	}
	wanted.SetName(c.name)
	return wanted, c.checkNamespace(wanted)
}

// applyTo merges an applied configuration into the live object.
func (c *call) applyTo(live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if version := wanted.GetResourceVersion(); version != "" && version != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(c.resource.groupResource(), c.name, errors.New("the object has been modified"))
	}
	merged, err := c.server.appliers.apply(c.resource, c.subresource, live, wanted, c.manager(), c.query.Get("force") == "true")
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(merged.Object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	result, err := c.conform(text)
	if err != nil {
		return nil, err
	}
	c.restrict(live, result)
	return result, nil
}

// applyNew creates an object from an applied configuration.
func (c *call) applyNew(wanted *unstructured.Unstructured) (*store.Object, error) {
	if c.subresource != "" || wanted.GetUID() != "" {
		return nil, apierrors.NewNotFound(c.resource.groupResource(), c.name)
	}
	merged, err := c.server.appliers.apply(c.resource, "", nil, wanted, c.manager(), c.query.Get("force") == "true")
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(merged.Object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	decoded, err := c.decodeJSON(text, c.resource.gvk)
	if err != nil {
		return nil, err
	}
	o := decoded.(typedObject) // All stored kinds have metadata.
	managed := o.GetManagedFields()
	if err := c.prepareCreate(o); err != nil {
		return nil, err
	}
	o.SetManagedFields(managed)
	u, err := canonical(o, c.resource.gvk)
	if err != nil {
		return nil, err
	}
	return c.group.Create(c.resource.groupResource(), u, c.writeOptions())
}
