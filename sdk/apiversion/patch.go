package apiversion

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// statusResource is the subresource of patches that change status alone.
const statusResource = "status"

// conversionPrefix is that of annotations which package conversion has beside conversion-data.
const conversionPrefix = "conversion.cluster.x-k8s.io/"

// MergeFrom is client.MergeFromWithOptions for clients of a Boundary, and all others. before must be the whole object, and a copy.
func MergeFrom(before client.Object, opts ...client.MergeFromOption) client.Patch {
	return mergePatch{Patch: client.MergeFromWithOptions(before, opts...), before: before}
}

// Merge returns a JSON merge patch for clients of a Boundary, and all others. before is the whole object, as it was or a newer copy, and
// data is in its version.
func Merge(before client.Object, data []byte) client.Patch {
	return mergePatch{Patch: client.RawPatch(types.MergePatchType, data), before: before}
}

// mergePatch is a merge patch that can be computed again in another version.
type mergePatch struct {
	client.Patch
	before client.Object
}

// document is a JSON object, or a merge patch.
type document = map[string]any

// patch returns a patch in the stored version; of the main resource, or of a subresource.
func (t *translation) patch(ctx context.Context, obj client.Object, patch client.Patch, subresource string) (client.Patch, error) {
	data, err := patch.Data(obj)
	if err != nil {
		return nil, err
	}
	if neutral := t.neutral(patch.Type(), data); neutral != nil {
		return client.RawPatch(patch.Type(), neutral), nil
	}
	merge, ok := patch.(mergePatch)
	if !ok {
		return nil, fmt.Errorf("patching %s %s: the patch is in version %s, but the stored version is %s: use MergeFrom or Merge of package "+
			"apiversion instead of client.MergeFrom or client.RawPatch, or patch the object in the stored version",
			t.code.Kind, client.ObjectKeyFromObject(obj), t.code.Version, t.stored.Version)
	}
	if data, err = t.merge(ctx, merge.before, data, subresource); err != nil {
		return nil, fmt.Errorf("patching %s %s: %w", t.code.Kind, client.ObjectKeyFromObject(obj), err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

// neutral returns a patch that is the same in all versions, because it changes metadata alone; nil for others.
func (t *translation) neutral(kind types.PatchType, data []byte) []byte {
	if kind == types.JSONPatchType {
		if !changesMetadataAlone(data) {
			return nil
		}
		return data
	}
	content, err := decode(data)
	if err != nil {
		return nil
	}
	for name := range content {
		if name != "metadata" && name != "apiVersion" && name != "kind" {
			return nil
		}
	}
	if !keepsConversionData(content) {
		return nil
	}
	if _, found := content["apiVersion"]; found {
		content["apiVersion"] = t.stored.GroupVersion().String()
	}
	data, err = json.Marshal(content)
	if err != nil {
		return nil
	}
	return data
}

// changesMetadataAlone reports whether a JSON patch is neutral.
func changesMetadataAlone(data []byte) bool {
	var operations []struct{ Path, From string }
	if json.Unmarshal(data, &operations) != nil {
		return false
	}
	for _, o := range operations {
		if !strings.HasPrefix(o.Path, "/metadata/") || o.From != "" && !strings.HasPrefix(o.From, "/metadata/") {
			return false
		}
		annotation, isAnnotation := strings.CutPrefix(o.Path, "/metadata/annotations")
		if isAnnotation && (annotation == "" || isConversionData(strings.ReplaceAll(annotation[1:], "~1", "/"))) {
			return false
		}
	}
	return true
}

// keepsConversionData reports whether a merge patch does not change the annotations with what a version cannot express. They differ
// between the versions, so that code does not see the stored ones: a patch that removes all annotations would remove them.
func keepsConversionData(patch document) bool {
	metadata, ok := patch["metadata"].(document)
	if !ok {
		return patch["metadata"] == nil
	}
	annotations, ok := metadata["annotations"].(document)
	if !ok {
		_, removed := metadata["annotations"]
		return !removed
	}
	return !changesConversionData(annotations)
}

func changesConversionData(annotations document) bool {
	for name := range annotations {
		if isConversionData(name) {
			return true
		}
	}
	return false
}

// isConversionData reports whether an annotation has what a version cannot express.
func isConversionData(annotation string) bool {
	return annotation == clusterv1.ConversionDataAnnotation || strings.HasPrefix(annotation, conversionPrefix)
}

// merge returns the merge patch in the stored version that has the effect of data on an object.
func (t *translation) merge(ctx context.Context, before client.Object, data []byte, subresource string) ([]byte, error) {
	changed, err := patched(before, data)
	if err != nil {
		return nil, err
	}
	from, err := t.storedDocument(ctx, before)
	if err != nil {
		return nil, err
	}
	to, err := t.storedDocument(ctx, changed)
	if err != nil {
		return nil, err
	}
	request, err := decode(data)
	if err != nil {
		return nil, err
	}
	patch := difference(from, to)
	if _, hasStatus := request["status"]; subresource == statusResource {
		delete(patch, "metadata")
		delete(patch, "spec")
	} else if !hasStatus {
		delete(patch, "status")
	}
	requireVersion(patch, request, before.GetResourceVersion())
	return json.Marshal(patch)
}

// requireVersion makes a patch require the versions that the request requires. If it replaces a list that was none in the request, or the
// an annotation with what the stored version cannot express, it requires the version that it was computed from: changes of other clients
// would be reverted.
func requireVersion(patch, request document, version string) {
	required := document{}
	if metadata, ok := request["metadata"].(document); ok {
		for _, name := range []string{"resourceVersion", "uid"} {
			if value, ok := metadata[name]; ok {
				required[name] = value
			}
		}
	}
	if _, ok := required["resourceVersion"]; !ok && version != "" && replacesMore(patch, request) {
		required["resourceVersion"] = version
	}
	if len(required) == 0 {
		return
	}
	metadata, ok := patch["metadata"].(document)
	if !ok {
		metadata = document{}
		patch["metadata"] = metadata
	}
	maps.Copy(metadata, required)
}

// replacesMore reports whether a patch replaces what is kept of other versions, or a list while the request replaces none.
func replacesMore(patch, request document) bool {
	metadata, _ := patch["metadata"].(document)
	annotations, _ := metadata["annotations"].(document)
	return changesConversionData(annotations) || replacesList(patch) && !replacesList(request)
}

// replacesList reports whether a merge patch replaces a list, or removes a field that may be one, outside of metadata.
func replacesList(patch document) bool {
	for name, value := range patch {
		if name != "metadata" && holdsList(value) {
			return true
		}
	}
	return false
}

func holdsList(value any) bool {
	switch v := value.(type) {
	case nil, []any:
		return true
	case document:
		for _, child := range v {
			if holdsList(child) {
				return true
			}
		}
	}
	return false
}

// patched returns an object to which a merge patch is applied.
func patched(before client.Object, data []byte) (client.Object, error) {
	encoded, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	merged, err := jsonpatch.MergePatch(encoded, data)
	if err != nil {
		return nil, err
	}
	after, ok := reflect.New(reflect.TypeOf(before).Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", before)
	}
	if u, ok := after.(*unstructured.Unstructured); ok {
		return u, u.UnmarshalJSON(merged)
	}
	return after, json.Unmarshal(merged, after)
}

// storedDocument returns an object in the stored version as JSON, without the metadata that only API servers set.
func (t *translation) storedDocument(ctx context.Context, obj client.Object) (document, error) {
	stored, err := t.toStored(ctx, obj)
	if err != nil {
		return nil, err
	}
	stored.SetManagedFields(nil)
	stored.SetCreationTimestamp(metav1.Time{})
	stored.SetGeneration(0)
	stored.SetResourceVersion("")
	encoded, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	return decode(encoded)
}

func decode(data []byte) (document, error) {
	content := document{}
	return content, kjson.UnmarshalCaseSensitivePreserveInts(data, &content)
}

// difference returns the merge patch (RFC 7386) from one object to another.
func difference(from, to document) document {
	patch := document{}
	for name, value := range to {
		before, isObject := from[name].(document)
		after, becomesObject := value.(document)
		switch {
		case isObject && becomesObject:
			if nested := difference(before, after); len(nested) > 0 {
				patch[name] = nested
			}
		case !reflect.DeepEqual(from[name], value):
			patch[name] = value
		}
	}
	for name := range from {
		if _, kept := to[name]; !kept {
			patch[name] = nil
		}
	}
	return patch
}
