package convert

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// file converts the objects of a file.
type file struct {
	version string
	// converted and kept are the numbers of objects that are converted, and of those that stay as they are.
	converted, kept int
	warnings        []string
}

// convert returns the file with its objects of Cluster API in the version.
func (f *file) convert(ctx context.Context, raw []byte) ([]byte, error) {
	if err := manifest.Check(raw); err != nil {
		return nil, err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	var out bytes.Buffer
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		if document, err = f.document(ctx, document); err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		if number > 1 {
			out.WriteString("---\n")
		}
		out.Write(document)
		if !bytes.HasSuffix(document, []byte("\n")) {
			out.WriteString("\n")
		}
	}
}

// document converts one document of a file.
func (f *file) document(ctx context.Context, raw []byte) ([]byte, error) {
	asJSON, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &u.Object); err != nil {
		return nil, err
	}
	if len(u.Object) == 0 {
		return raw, nil // It has comments only.
	}
	changed, err := f.object(ctx, u)
	if err != nil || !changed {
		return raw, err
	}
	return yaml.Marshal(u.Object)
}

// object converts an object, or the items of a List, in place, and reports whether it changed.
func (f *file) object(ctx context.Context, u *unstructured.Unstructured) (changed bool, err error) {
	if items, ok := u.Object["items"].([]any); ok && strings.HasSuffix(u.GetKind(), "List") {
		return f.list(ctx, u, items)
	}
	if !f.isOlder(u.GroupVersionKind()) {
		f.kept++
		return false, nil
	}
	if err := strict(u); err != nil {
		return false, fmt.Errorf("%s: %w: correct it; templates with variables are processed first (`clusterctl generate yaml`)",
			manifest.Describe(u), err)
	}
	out, err := conversion.Shared().In(ctx, f.version, u)
	if err != nil {
		return false, err
	}
	if err := f.leftOut(ctx, u, out); err != nil {
		return false, fmt.Errorf("%s: %w", manifest.Describe(u), err)
	}
	f.patches(u)
	u.Object = out.Object
	f.converted++
	return true, nil
}

// list converts the items of a List. A list of one kind, such as a ClusterList, gets the version of its items.
func (f *file) list(ctx context.Context, u *unstructured.Unstructured, items []any) (changed bool, err error) {
	for i := range items {
		item, ok := items[i].(map[string]any)
		if !ok {
			continue
		}
		next := &unstructured.Unstructured{Object: item}
		itemChanged, err := f.object(ctx, next)
		if err != nil {
			return false, fmt.Errorf("item %d: %w", i+1, err)
		}
		changed = changed || itemChanged
		items[i] = next.Object
	}
	kind := u.GroupVersionKind()
	if kind.Kind = strings.TrimSuffix(kind.Kind, "List"); f.isOlder(kind) {
		u.SetAPIVersion(schema.GroupVersion{Group: kind.Group, Version: f.version}.String())
		changed = true
	}
	return changed, nil
}

// isOlder reports whether a kind is in another version that can be converted.
func (f *file) isOlder(kind schema.GroupVersionKind) bool {
	versions := conversion.Shared().Versions(kind.GroupKind())
	return kind.Version != f.version && slices.Contains(versions, kind.Version) && slices.Contains(versions, f.version)
}

// strict returns an error for fields that the version of an object does not have: a conversion would lose them.
func strict(u *unstructured.Unstructured) error {
	typed, err := conversion.Shared().NewObject(u.GroupVersionKind())
	if err != nil {
		return err
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(typed)
}

// leftOut removes what a conversion keeps in an annotation for API servers, and warns about what the version cannot express. Empty
// objects and lists are kept where the version allows them.
func (f *file) leftOut(ctx context.Context, written, u *unstructured.Unstructured) error {
	annotations := u.GetAnnotations()
	delete(annotations, conversion.OlderVersionAnnotation)
	delete(annotations, clusterv1.ConversionDataAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetAnnotations(annotations)

	c, err := compare(ctx, written, u)
	if err != nil {
		return err
	}
	keep(u, written.Object, c.allowed)
	if len(c.lost) > 0 {
		f.warnings = append(f.warnings, fmt.Sprintf("%s: %s has no field for %s: it is left out",
			manifest.Describe(u), f.version, strings.Join(c.lost, ", ")))
	}
	if strings.HasSuffix(u.GetKind(), "Template") {
		return f.emptyOfTemplate(written, u, c.empty)
	}
	return nil // Elsewhere, an empty object is the same as none.
}

// emptyOfTemplate keeps the empty objects and lists of a template that the version does not allow, in the annotation of conversions,
// because JSON patches for the older version can only add to what exists. Items of lists are not among them: patches cannot address these.
func (f *file) emptyOfTemplate(written, u *unstructured.Unstructured, empty []path) error {
	kept, paths := map[string]any{}, []string(nil)
	for _, at := range empty {
		if !slices.ContainsFunc(at, isPosition) && put(kept, at, valueAt(written.Object, at)) {
			paths = append(paths, at.String())
		}
	}
	if len(paths) == 0 {
		return nil
	}
	kept["apiVersion"], kept["kind"] = written.GetAPIVersion(), written.GetKind()
	content, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[conversion.OlderVersionAnnotation] = string(content)
	u.SetAnnotations(annotations)
	f.warnings = append(f.warnings, fmt.Sprintf("%s: %s does not allow that %s is empty: the annotation %s keeps it for patches of a "+
		"ClusterClass that are for %s; patches for %s must add it with a value", manifest.Describe(u), f.version, strings.Join(paths, ", "),
		conversion.OlderVersionAnnotation, written.GroupVersionKind().Version, f.version))
	return nil
}

// patches warns about the patches of a ClusterClass, which are written for a version of the templates that they select.
func (f *file) patches(u *unstructured.Unstructured) {
	if u.GetKind() != "ClusterClass" {
		return
	}
	patches, _, _ := unstructured.NestedSlice(u.Object, "spec", "patches")
	for _, item := range patches {
		patch, _ := item.(map[string]any)
		name, _ := patch["name"].(string)
		definitions, _, _ := unstructured.NestedSlice(patch, "definitions")
		for _, item := range definitions {
			definition, _ := item.(map[string]any)
			apiVersion, _, _ := unstructured.NestedString(definition, "selector", "apiVersion")
			kind, _, _ := unstructured.NestedString(definition, "selector", "kind")
			if f.isOlder(schema.FromAPIVersionAndKind(apiVersion, kind)) {
				f.warnings = append(f.warnings, fmt.Sprintf("%s: patch %q is for %s in %s and is not converted: look at its paths and values "+
					"if you change that version", manifest.Describe(u), name, kind, apiVersion))
			}
		}
	}
}
