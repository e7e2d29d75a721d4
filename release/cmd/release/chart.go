package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	// releaseNamespace is the expression in a chart for the namespace that it is installed in.
	releaseNamespace = "{{ .Release.Namespace }}"
	// keepAnnotation is on what Helm must not delete.
	keepAnnotation = "helm.sh/resource-policy"
)

// packagedChart is the Helm chart of a component, as an archive.
type packagedChart struct {
	// File is its name, as helm package chooses it.
	File    string
	Content []byte
}

// chart packages the Helm chart of a component, nil if it has none. The files in its folder are completed by the component's objects, so
// that each exists once: as templates in the namespace of the Helm release, and the Deployment as a file that a template changes.
func (r release) chart(c component, components []component) (*packagedChart, error) {
	folder := filepath.Join(c.folder, "chart")
	files, err := readFolder(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	objects, err := r.objects(c)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if err := addObject(files, o); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	if files["files/namespaces.yaml"], err = namespaces(components); err != nil {
		return nil, err
	}
	if files["values.schema.json"], err = withSpec(files["values.schema.json"], objects); err != nil {
		return nil, fmt.Errorf("values.schema.json: %w", err)
	}
	var about map[string]any
	if err := yaml.UnmarshalStrict(files["Chart.yaml"], &about); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(folder, "Chart.yaml"), err)
	}
	name, _ := about["name"].(string)
	version := strings.TrimPrefix(r.version, "v")
	about["version"], about["appVersion"] = version, r.version
	if files["Chart.yaml"], err = yaml.Marshal(about); err != nil {
		return nil, err
	}
	content, err := archive(name, files)
	return &packagedChart{File: name + "-" + version + ".tgz", Content: content}, err
}

// readFolder returns the files in a folder by their paths in it, with slashes.
func readFolder(folder string) (map[string][]byte, error) {
	files, tree := map[string][]byte{}, os.DirFS(folder)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(tree, name)
		return err
	})
	return files, err
}

// addObject adds an object to the files of a chart.
func addObject(files map[string][]byte, o *unstructured.Unstructured) error {
	switch o.GetKind() {
	case "Namespace":
		return nil // It is the release's, and Helm does not own that.
	case "Deployment":
		raw, err := yaml.Marshal(o.Object)
		files["files/deployment.yaml"] = raw
		return err
	case "CustomResourceDefinition":
		// Without it, uninstalling deletes the objects of all users.
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[keepAnnotation] = "keep"
		o.SetAnnotations(annotations)
	}
	raw, err := yaml.Marshal(o.Object)
	if err != nil {
		return err
	}
	if bytes.Contains(raw, []byte("{{")) {
		return errors.New("it contains {{, which Helm would execute")
	}
	relocate(o)
	if raw, err = yaml.Marshal(o.Object); err != nil {
		return err
	}
	name := path.Join("templates", strings.ToLower(o.GetKind()), o.GetName()+".yaml")
	if _, taken := files[name]; taken {
		return fmt.Errorf("the chart has %s already", name)
	}
	files[name] = raw
	return nil
}

// relocate makes an object, and what it refers to, one in the namespace of the Helm release.
func relocate(o *unstructured.Unstructured) {
	if o.GetNamespace() != "" {
		o.SetNamespace(releaseNamespace)
	}
	for _, field := range []string{"subjects", "webhooks"} {
		items, _, _ := unstructured.NestedSlice(o.Object, field)
		for _, i := range items {
			item, ok := i.(map[string]any)
			if !ok {
				continue
			}
			if field == "subjects" {
				item["namespace"] = releaseNamespace
				continue
			}
			_ = unstructured.SetNestedField(item, releaseNamespace, "clientConfig", "service", "namespace")
		}
		if len(items) > 0 {
			_ = unstructured.SetNestedSlice(o.Object, items, field)
		}
	}
}

// namespaces returns the namespaces of the release's providers by type and name, in which clusterctl installs them.
func namespaces(components []component) ([]byte, error) {
	out := map[string]map[string]string{}
	for _, c := range components {
		if !c.isProvider() {
			continue
		}
		if out[c.Type] == nil {
			out[c.Type] = map[string]string{}
		}
		out[c.Type][c.Name()] = c.Namespace
	}
	return yaml.Marshal(out)
}

// withSpec adds the fields of the spec of provider objects to the schema of an entry of values.
func withSpec(schema []byte, objects []*unstructured.Unstructured) ([]byte, error) {
	var out map[string]any
	if err := json.Unmarshal(schema, &out); err != nil {
		return nil, err
	}
	fields, found, err := unstructured.NestedMap(out, "definitions", "provider", "properties")
	if err != nil || !found {
		return nil, fmt.Errorf("definitions.provider.properties: found: %t, %w", found, err)
	}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		spec, err := specOf(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.GetName(), err)
		}
		maps.Copy(fields, spec)
		break // All kinds have the same spec.
	}
	if err := unstructured.SetNestedMap(out, fields, "definitions", "provider", "properties"); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// specOf returns the schemas of the fields of spec that a CustomResourceDefinition stores.
func specOf(crd *unstructured.Unstructured) (map[string]any, error) {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if stored, _ := version["storage"].(bool); !stored {
			continue
		}
		spec, _, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec")
		if err != nil {
			return nil, err
		}
		fields, _ := jsonSchema(spec)["properties"].(map[string]any)
		return fields, nil
	}
	return nil, errors.New("no version is stored")
}

// jsonSchema returns the JSON schema of a structural schema: what it means for values that users write, without descriptions. Fields that
// do not exist are refused, as kubectl does.
func jsonSchema(structural map[string]any) map[string]any {
	out := map[string]any{}
	for _, keyword := range []string{"type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"} {
		if value, ok := structural[keyword]; ok {
			out[keyword] = value
		}
	}
	if anything, _ := structural["x-kubernetes-int-or-string"].(bool); anything {
		out["type"] = []any{"integer", "string"}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if inner, ok := structural[keyword].(map[string]any); ok {
			out[keyword] = jsonSchema(inner)
		}
	}
	properties, ok := structural["properties"].(map[string]any)
	if !ok {
		return out
	}
	fields, defaulted := map[string]any{}, map[string]bool{}
	for name, property := range properties {
		if inner, ok := property.(map[string]any); ok {
			fields[name] = jsonSchema(inner)
			_, defaulted[name] = inner["default"]
		}
	}
	out["properties"], out["additionalProperties"] = fields, false
	required, _ := structural["required"].([]any)
	required = slices.DeleteFunc(slices.Clone(required), func(name any) bool { field, _ := name.(string); return defaulted[field] })
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// archive returns files as a compressed archive, in a folder. The same files are the same bytes.
func archive(folder string, files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	packed := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{
			Name: path.Join(folder, name), Mode: 0o644, Size: int64(len(files[name])), ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatUSTAR,
		}
		if err := packed.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := packed.Write(files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := errors.Join(packed.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
