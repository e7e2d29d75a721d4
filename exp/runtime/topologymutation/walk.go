package topologymutation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// MutateFunc changes a template. variables are those of the request, overridden by those of the template. An error fails the request; it
// must be deterministic, because users see it.
type MutateFunc = func(
	ctx context.Context, template runtime.Object, variables map[string]apiextensionsv1.JSON, holder runtimehooksv1.HolderReference,
) error

// WalkTemplatesOption changes WalkTemplates.
type WalkTemplatesOption interface {
	// ApplyToWalkTemplates sets the option.
	ApplyToWalkTemplates(options *WalkTemplatesOptions)
}

// WalkTemplatesOptions are all options of WalkTemplates.
type WalkTemplatesOptions struct {
	failForUnknownTypes bool
	patchFormat         runtimehooksv1.PatchType
}

// FailForUnknownTypes fails requests with templates of types that the decoder does not know. By default, they are left as they are.
type FailForUnknownTypes struct{}

// ApplyToWalkTemplates implements WalkTemplatesOption.
func (FailForUnknownTypes) ApplyToWalkTemplates(o *WalkTemplatesOptions) {
	o.failForUnknownTypes = true
}

// PatchFormat sets the format of the patches. The default is JSONPatch.
type PatchFormat struct {
	// Format is JSONPatch or JSONMergePatch.
	Format runtimehooksv1.PatchType
}

// ApplyToWalkTemplates implements WalkTemplatesOption.
func (p PatchFormat) ApplyToWalkTemplates(o *WalkTemplatesOptions) { o.patchFormat = p.Format }

// WalkTemplates calls mutate for each template of a request, decoded by decoder, and puts a patch with the changes into the response.
// Templates that did not change have no patch, and fields that the Go type does not have are left as they are. The response succeeds if
// all templates were walked; else it fails with the first error, and has no patches.
func WalkTemplates(
	ctx context.Context, decoder runtime.Decoder, request *runtimehooksv1.GeneratePatchesRequest,
	response *runtimehooksv1.GeneratePatchesResponse, mutate MutateFunc, options ...WalkTemplatesOption,
) {
	o := WalkTemplatesOptions{patchFormat: runtimehooksv1.JSONPatchType}
	for _, option := range options {
		option.ApplyToWalkTemplates(&o)
	}
	patches := []runtimehooksv1.GeneratePatchesResponseItem{}
	global := ToMap(request.Variables)
	for i := range request.Items {
		patch, err := o.walk(ctx, decoder, &request.Items[i], global, mutate)
		if err != nil {
			response.Status, response.Message = runtimehooksv1.ResponseStatusFailure, err.Error()
			return
		}
		if patch != nil {
			patches = append(patches, runtimehooksv1.GeneratePatchesResponseItem{UID: request.Items[i].UID, PatchType: o.patchFormat, Patch: patch})
		}
	}
	response.Status, response.Items = runtimehooksv1.ResponseStatusSuccess, patches
}

// walk returns the patch of one template, nil if nothing changed.
func (o *WalkTemplatesOptions) walk(
	ctx context.Context, decoder runtime.Decoder, item *runtimehooksv1.GeneratePatchesRequestItem,
	global map[string]apiextensionsv1.JSON, mutate MutateFunc,
) ([]byte, error) {
	template, kind, err := decoder.Decode(item.Object.Raw, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err) && !o.failForUnknownTypes:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot decode the template for %s of %s %s: %w",
			item.HolderReference.FieldPath, item.HolderReference.Kind, item.HolderReference.Name, err)
	}
	variables, err := MergeVariableMaps(global, ToMap(item.Variables))
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", kind, err)
	}
	if err := mutate(ctx, template, variables, item.HolderReference); err != nil {
		return nil, err
	}
	after, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", kind, err)
	}
	patch, err := o.patch(item.Object.Raw, before, after)
	if err != nil {
		return nil, fmt.Errorf("cannot compute a patch for %s: %w", kind, err)
	}
	return patch, nil
}

// patch returns what changes between before and after, two encodings of a Go type, as a patch of raw, which may lack parents of the changed
// fields and have fields that the type does not have. It returns nil if nothing changes.
func (o *WalkTemplatesOptions) patch(raw, before, after []byte) ([]byte, error) {
	merge, err := jsonpatch.CreateMergePatch(before, after)
	switch {
	case err != nil:
		return nil, err
	case bytes.Equal(merge, []byte("{}")):
		return nil, nil
	}
	switch o.patchFormat {
	case runtimehooksv1.JSONMergePatchType:
		return merge, nil
	case runtimehooksv1.JSONPatchType:
		operations, err := operationsOf(raw, merge)
		if err != nil || len(operations) == 0 {
			return nil, err
		}
		return json.Marshal(operations)
	}
	return nil, fmt.Errorf("the format is %q, but must be %s or %s",
		o.patchFormat, runtimehooksv1.JSONPatchType, runtimehooksv1.JSONMergePatchType)
}
