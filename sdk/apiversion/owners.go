package apiversion

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownerVersion returns the API version for an owner reference: the stored one if the kind is of the Registry, and has the version of the
// reference. The garbage collector reads the owner of each object whose reference is in another version than the one it watches.
func (b *Boundary) ownerVersion(ctx context.Context, apiVersion, kind string) string {
	of := schema.FromAPIVersionAndKind(apiVersion, kind)
	if !slices.Contains(b.registry.Versions(of.GroupKind()), of.Version) {
		return apiVersion
	}
	stored, err := b.Stored(ctx, of.GroupKind())
	if err != nil {
		return apiVersion // It is not wrong, and what needs the kind reports the error.
	}
	return schema.GroupVersion{Group: of.Group, Version: stored}.String()
}

// setOwners sets the versions of the owner references of an object.
func (b *Boundary) setOwners(ctx context.Context, obj client.Object) {
	refs := obj.GetOwnerReferences()
	if len(refs) == 0 {
		return
	}
	out := make([]metav1.OwnerReference, len(refs))
	for i, ref := range refs {
		ref.APIVersion = b.ownerVersion(ctx, ref.APIVersion, ref.Kind)
		out[i] = ref
	}
	obj.SetOwnerReferences(out)
}

// withOwners returns a patch in which owner references have their versions.
func (b *Boundary) withOwners(ctx context.Context, obj client.Object, patch client.Patch) (client.Patch, error) {
	data, err := patch.Data(obj)
	if err != nil {
		return nil, err
	}
	if patch.Type() == types.JSONPatchType || !bytes.Contains(data, []byte(`"ownerReferences"`)) {
		return client.RawPatch(patch.Type(), data), nil
	}
	content, err := decode(data)
	if err != nil {
		return nil, err
	}
	refs, _, _ := unstructured.NestedFieldNoCopy(content, "metadata", "ownerReferences")
	list, _ := refs.([]any)
	for _, item := range list {
		ref, _ := item.(document)
		apiVersion, _ := ref["apiVersion"].(string)
		kind, _ := ref["kind"].(string)
		if apiVersion != "" {
			ref["apiVersion"] = b.ownerVersion(ctx, apiVersion, kind)
		}
	}
	data, err = json.Marshal(content)
	return client.RawPatch(patch.Type(), data), err
}
