package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	applypatch "github.com/evanphx/json-patch/v5"
	jsonpatch "gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
)

// versioned admits objects of all versions of a kind by a handler of one version, so that the verdict is the same for all, and API servers
// need not convert objects to ask for it.
type versioned struct {
	inner    admission.Handler
	kind     schema.GroupVersionKind
	registry apiversion.Registry
	// scheme has the types of the versions, for errors.
	scheme *runtime.Scheme
	// older admit objects as they were written, before the handler does, by version.
	older map[string]admission.Handler
}

// Handle implements admission.Handler.
func (v versioned) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Kind.Version == v.kind.Version || req.Kind.Group != v.kind.Group || req.Kind.Kind != v.kind.Kind {
		return v.inner.Handle(ctx, req)
	}
	written := req.Object.Raw
	var changes []jsonpatch.JsonPatchOperation
	if older := v.older[req.Kind.Version]; older != nil {
		response := older.Handle(ctx, req)
		if !response.Allowed {
			return response
		}
		changes = response.Patches
		var err error
		if written, err = patched(written, changes); err != nil {
			return v.failed(req, err)
		}
	}
	inner, err := v.converted(ctx, req, written)
	if err != nil {
		return v.unreadable(req, err)
	}
	response := v.inner.Handle(ctx, inner)
	if !response.Allowed && response.Result != nil && response.Result.Details != nil && len(response.Result.Details.Causes) > 0 {
		// kubectl composes the message from the causes.
		response.Warnings = append(response.Warnings, "errors name the fields of "+v.kind.Kind+" as in "+v.kind.Version)
	}
	if len(response.Patches) == 0 {
		response.Patches = changes
		return response
	}
	defaulted, err := v.defaulted(ctx, written, inner.Object.Raw, response.Patches, req.Kind.Version)
	if err == nil {
		response.Patches, err = operationsBetween(req.Object.Raw, defaulted)
	}
	if err != nil {
		return v.failed(req, err)
	}
	return response
}

func (v versioned) failed(req admission.Request, err error) admission.Response {
	return admission.Errored(http.StatusInternalServerError,
		fmt.Errorf("defaulting %s %s/%s: %w", req.Kind.Kind, req.Namespace, req.Name, err))
}

// unreadable returns the response for an object that cannot be converted. If it does not fit the type of its version, that tells where.
func (v versioned) unreadable(req admission.Request, err error) admission.Response {
	if typed, unknown := v.scheme.New(schema.GroupVersionKind(req.Kind)); unknown == nil {
		if misfit := decodeObject(req, typed); misfit != nil {
			return admission.Errored(http.StatusBadRequest, misfit)
		}
	}
	return admission.Errored(http.StatusBadRequest, fmt.Errorf("converting %s %s/%s: %w", req.Kind.Kind, req.Namespace, req.Name, err))
}

// converted returns a request in the version of the handler. written is its object.
func (v versioned) converted(ctx context.Context, req admission.Request, written []byte) (admission.Request, error) {
	if req.RequestKind == nil {
		written := req.Kind
		req.RequestKind = &written
	}
	req.Kind.Version = v.kind.Version
	var err error
	if req.Object.Raw, err = v.convert(ctx, written, v.kind.Version); err != nil {
		return req, err
	}
	req.OldObject.Raw, err = v.convert(ctx, req.OldObject.Raw, v.kind.Version)
	return req, err
}

// defaulted returns an object in the version in which it was written, with the patches of the converted one. Only what these change is
// changed, and nothing that the conversion would change.
func (v versioned) defaulted(
	ctx context.Context, written, converted []byte, patches []jsonpatch.JsonPatchOperation, version string,
) ([]byte, error) {
	changed, err := patched(converted, patches)
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
	return carryOver(written, before, json.RawMessage(after))
}

// patched returns a document with patches.
func patched(document []byte, patches []jsonpatch.JsonPatchOperation) ([]byte, error) {
	if len(patches) == 0 {
		return document, nil
	}
	encoded, err := json.Marshal(patches)
	if err != nil {
		return nil, err
	}
	patch, err := applypatch.DecodePatch(encoded)
	if err != nil {
		return nil, err
	}
	return patch.Apply(document)
}

// convert returns the JSON of an object in a version; nothing if there is none. In an older version, it lacks the annotation with what only
// the newest one has: who converts a whole object writes that.
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
	if annotations := dst.GetAnnotations(); annotations[clusterv1.ConversionDataAnnotation] != "" {
		delete(annotations, clusterv1.ConversionDataAnnotation)
		dst.SetAnnotations(annotations)
	}
	return json.Marshal(dst.Object)
}
