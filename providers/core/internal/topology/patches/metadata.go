package patches

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// metadataFields are the fields of metadata that patches may change.
var metadataFields = []string{"labels", "annotations"}

// changeable returns a copy of the fields of a template that patches may change. Both maps of the metadata are set, so that patches can
// add keys.
func changeable(template map[string]any) map[string]any {
	metadata := map[string]any{}
	for _, name := range metadataFields {
		metadata[name] = map[string]any{}
		if value, found, err := unstructured.NestedFieldNoCopy(template, "metadata", name); found && err == nil && value != nil {
			metadata[name] = runtime.DeepCopyJSONValue(value)
		}
	}
	return map[string]any{"spec": runtime.DeepCopyJSONValue(template["spec"]), "metadata": metadata}
}

// overlay returns a template with the changed fields. Neither is changed.
func overlay(template, changed map[string]any) map[string]any {
	out := maps.Clone(template)
	out["spec"] = changed["spec"]
	metadata := map[string]any{}
	if present, ok := template["metadata"].(map[string]any); ok {
		metadata = maps.Clone(present)
	}
	for _, name := range metadataFields {
		value, _, _ := unstructured.NestedFieldNoCopy(changed, "metadata", name)
		if all, isMap := value.(map[string]any); value == nil || isMap && len(all) == 0 {
			delete(metadata, name)
			continue
		}
		metadata[name] = value
	}
	out["metadata"] = metadata
	return out
}

// patchedMetadata returns the labels and annotations of the target, by field. Those that no patch changed are missing. They are from the
// template itself if the target is a template, too, otherwise from spec.template.metadata. What the topology sets takes precedence.
func (i *item) patchedMetadata() (map[string]map[string]string, error) {
	if i.root == nil {
		return nil, nil
	}
	path := []string{"metadata"}
	if !isTemplate(i.place) {
		path = []string{"spec", "template", "metadata"}
	}
	out := map[string]map[string]string{}
	for _, name := range metadataFields {
		fields := append(slices.Clip(path), name)
		before, _, _ := unstructured.NestedFieldNoCopy(i.source.Object, fields...)
		after, _, _ := unstructured.NestedFieldNoCopy(i.root, fields...)
		if reflect.DeepEqual(before, after) {
			continue
		}
		was, _, err := unstructured.NestedStringMap(i.source.Object, fields...)
		if err != nil {
			return nil, fmt.Errorf("%s: %s must be a map of strings: %w", i, strings.Join(fields, "."), err)
		}
		is, _, err := unstructured.NestedStringMap(i.root, fields...)
		if err != nil {
			return nil, fmt.Errorf("%s: %s must be a map of strings after all patches: %w", i, strings.Join(fields, "."), err)
		}
		if maps.Equal(was, is) {
			continue
		}
		target := i.target.GetLabels()
		if name == "annotations" {
			target = i.target.GetAnnotations()
		}
		out[name] = patchedMap(was, is, target)
	}
	return out, nil
}

// patchedMap returns a map of the target, given those of the template before and after patches.
func patchedMap(was, is, target map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range is {
		if !reserved(key) || was[key] == value {
			out[key] = value
		}
	}
	for key, value := range target {
		if before, fromTemplate := was[key]; !fromTemplate || before != value || reserved(key) {
			out[key] = value
		}
	}
	delete(out, corev1.LastAppliedConfigAnnotation)
	return out
}

// reserved reports whether a key belongs to the topology controller: patches can neither set nor remove it.
func reserved(key string) bool {
	return strings.HasPrefix(key, "cluster.x-k8s.io/") || strings.HasPrefix(key, "topology.cluster.x-k8s.io/")
}

// setMetadata writes the results of patchedMetadata into the target.
func (i *item) setMetadata(changed map[string]map[string]string) {
	if labels, ok := changed["labels"]; ok {
		i.target.SetLabels(labels)
	}
	if annotations, ok := changed["annotations"]; ok {
		i.target.SetAnnotations(annotations)
	}
}
