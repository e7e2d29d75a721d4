package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	applypatch "github.com/evanphx/json-patch/v5"
	jsonpatch "gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"sigs.k8s.io/cluster-api/sdk/apiversion"
)

// versioned admits objects of all versions of a kind by a handler of one version, so that the verdict is the same for all, and API servers
// need not convert objects to ask for it.
type versioned struct {
	inner    admission.Handler
	kind     schema.GroupVersionKind
	registry apiversion.Registry
}

// Handle implements admission.Handler.
func (v versioned) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Kind.Version == v.kind.Version || req.Kind.Group != v.kind.Group || req.Kind.Kind != v.kind.Kind {
		return v.inner.Handle(ctx, req)
	}
	written := req.Object.Raw
	inner := req
	inner.Kind.Version = v.kind.Version
	var err error
	if inner.Object.Raw, err = v.convert(ctx, req.Object.Raw, v.kind.Version); err == nil {
		inner.OldObject.Raw, err = v.convert(ctx, req.OldObject.Raw, v.kind.Version)
	}
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("converting %s %s/%s: %w", req.Kind.Kind, req.Namespace, req.Name, err))
	}
	response := v.inner.Handle(ctx, inner)
	if len(response.Patches) == 0 {
		return response
	}
	if response.Patches, err = v.patches(ctx, written, inner.Object.Raw, response.Patches, req.Kind.Version); err != nil {
		return admission.Errored(http.StatusInternalServerError,
			fmt.Errorf("defaulting %s %s/%s: %w", req.Kind.Kind, req.Namespace, req.Name, err))
	}
	return response
}

// patches returns the patches of an object in the version in which it was written, from those of the converted one. They change what these
// change, and nothing that the conversion would change.
func (v versioned) patches(
	ctx context.Context, written, converted []byte, patches []jsonpatch.JsonPatchOperation, version string,
) ([]jsonpatch.JsonPatchOperation, error) {
	encoded, err := json.Marshal(patches)
	if err != nil {
		return nil, err
	}
	patch, err := applypatch.DecodePatch(encoded)
	if err != nil {
		return nil, err
	}
	changed, err := patch.Apply(converted)
	if err != nil {
		return nil, err
	}
	before, err := v.convert(ctx, converted, version)
	if err != nil {
		return nil, err
	}
	after, err := v.convert(ctx, changed, version)
	if err != nil {
		return nil, err
	}
	defaulted, err := carryOver(written, before, json.RawMessage(after))
	if err != nil {
		return nil, err
	}
	return operationsBetween(written, defaulted)
}

// convert returns the JSON of an object in a version; nothing if there is none.
func (v versioned) convert(ctx context.Context, raw []byte, version string) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	src, dst := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &src.Object); err != nil {
		return nil, err
	}
	dst.SetGroupVersionKind(v.kind.GroupKind().WithVersion(version))
	if err := v.registry.Convert(ctx, src, dst); err != nil {
		return nil, err
	}
	return json.Marshal(dst.Object)
}
