package inplace

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Overlaid returns an object of a Machine with the spec of a new one. What its provider has added stays; what its creator has set, as the
// managed fields show, and the new one has not, is removed. ours are the fields that the creator owns.
func Overlaid(is, wanted *unstructured.Unstructured, ours *fieldpath.Set) *unstructured.Unstructured {
	out := is.DeepCopy()
	spec, _, _ := unstructured.NestedMap(is.Object, "spec")
	template, _, _ := unstructured.NestedMap(wanted.Object, "spec")
	if merged := overlay(spec, template, ours.WithPrefix(fieldpath.MakePathOrDie("spec")[0])); len(merged) > 0 {
		out.Object["spec"] = merged
	} else {
		delete(out.Object, "spec") // v1beta2 neither stores nor accepts empty objects.
	}
	annotations := maps.Clone(is.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range []string{clusterv1.TemplateClonedFromNameAnnotation, clusterv1.TemplateClonedFromGroupKindAnnotation} {
		if value, ok := wanted.GetAnnotations()[key]; ok {
			annotations[key] = value
		}
	}
	out.SetAnnotations(annotations)
	return out
}

// overlay overlays an object by another one, and removes fields that are owned and that the other one does not have. Lists are replaced as
// a whole.
func overlay(is, wanted map[string]any, ours *fieldpath.Set) map[string]any {
	out := map[string]any{}
	maps.Copy(out, wanted)
	for key, value := range is {
		element := fieldpath.PathElement{FieldName: &key}
		within := ours.WithPrefix(element)
		isOwned := ours.Has(fieldpath.Path{element}) || !within.Empty()
		over, has := wanted[key]
		inner, isObject := value.(map[string]any)
		overInner, overIsObject := over.(map[string]any)
		switch {
		case isObject && overIsObject:
			out[key] = overlay(inner, overInner, within)
		case has:
		case isObject && isOwned:
			if rest := overlay(inner, nil, within); len(rest) > 0 {
				out[key] = rest
			}
		case !isOwned:
			out[key] = value
		}
	}
	return out
}
