package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/change"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/sdk/expansion"
)

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
		text, err := change.ApplyPatch(types.PatchType(mediaType), current.Raw(), body, c.resource.gvk)
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
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)",
			wanted.GetName(), c.name))
	}
	wanted.SetName(c.name)
	return wanted, c.checkNamespace(wanted)
}

// applyTo merges an applied configuration into the live object.
func (c *call) applyTo(live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if version := wanted.GetResourceVersion(); version != "" && version != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(c.resource.groupResource(), c.name, errors.New("the object has been modified"))
	}
	merged, err := c.server.appliers.Apply(c.resource.managed(), c.subresource, live, wanted, c.manager(), c.query.Get("force") == "true")
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
	merged, err := c.server.appliers.Apply(c.resource.managed(), "", nil, wanted, c.manager(), c.query.Get("force") == "true")
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
