package reference

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/docs/book"
	"sigs.k8s.io/cluster-api/docs/manual"
)

// API returns a page per API group and version with the fields of its kinds, from the CustomResourceDefinitions in the files that match a
// pattern. Pages of versions that are stored come first.
func API(tree fs.FS, pattern string) ([]manual.Generated, error) {
	names, err := fs.Glob(tree, pattern)
	if err != nil {
		return nil, err
	}
	type version struct{ group, name string }
	kinds := map[version][]apiextensionsv1.CustomResourceDefinition{}
	stored := map[version]bool{}
	for _, name := range names {
		raw, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, err
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &definition); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, v := range definition.Spec.Versions {
			if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
				of := version{definition.Spec.Group, v.Name}
				kinds[of] = append(kinds[of], definition)
				stored[of] = stored[of] || v.Storage
			}
		}
	}
	versions := slices.SortedFunc(maps.Keys(kinds), func(a, b version) int {
		if stored[a] != stored[b] {
			return map[bool]int{true: -1, false: 1}[stored[a]]
		}
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(b.name, a.name))
	})
	var pages []manual.Generated
	for _, of := range versions {
		short, _, _ := strings.Cut(of.group, ".")
		title := "API " + of.group + "/" + of.name
		var out strings.Builder
		fmt.Fprintf(&out, "# %s\n\nAll fields of the kinds of this version", title)
		if !stored[of] {
			out.WriteString(", which is served, but not stored")
		}
		out.WriteString(". `kubectl explain` shows the same.\n\n")
		slices.SortFunc(kinds[of], func(a, b apiextensionsv1.CustomResourceDefinition) int {
			return cmp.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind)
		})
		known := map[string]string{}
		for i := range kinds[of] {
			kind(&out, &kinds[of][i], of.name, known)
		}
		pages = append(pages, manual.Generated{
			Page: book.Page{
				File: "api-" + short + "-" + of.name + ".md", Title: title,
				Summary: "all fields of the kinds of " + of.group + "/" + of.name,
			},
			Chapter: Chapter, Source: []byte(out.String()),
		})
	}
	return pages, nil
}

// kind writes the section of a kind in a version. Kinds that have the same fields as one of those before, by their fields, refer to it.
func kind(out *strings.Builder, definition *apiextensionsv1.CustomResourceDefinition, of string, known map[string]string) {
	name := definition.Spec.Names.Kind
	for _, version := range definition.Spec.Versions {
		if version.Name != of {
			continue
		}
		schema := version.Schema.OpenAPIV3Schema
		fmt.Fprintf(out, "## %s\n\n%s\n\n`%s/%s`, `%s`\n\n", name, cell(schema.Description),
			definition.Spec.Group, version.Name, definition.Spec.Names.Plural)
		var fields strings.Builder
		for _, top := range slices.Sorted(maps.Keys(schema.Properties)) {
			if top != "apiVersion" && top != "kind" && top != "metadata" {
				field(&fields, top, schema.Properties[top], false)
			}
		}
		if same, ok := known[fields.String()]; ok {
			fmt.Fprintf(out, "The fields are those of [%s](#%s).\n\n", same, strings.ToLower(same))
			continue
		}
		known[fields.String()] = name
		fmt.Fprintf(out, "| field | type | |\n|---|---|---|\n%s\n", fields.String())
	}
}

// field writes the row of a field, and those of the fields in it.
func field(out *strings.Builder, path string, schema apiextensionsv1.JSONSchemaProps, required bool) {
	var notes []string
	if schema.Description != "" {
		notes = append(notes, cell(schema.Description))
	}
	if required {
		notes = append(notes, "Required.")
	}
	if schema.Default != nil {
		notes = append(notes, "Default: `"+strings.ReplaceAll(string(schema.Default.Raw), "|", `\|`)+"`.")
	}
	if values := valuesOf(schema.Enum); values != "" {
		notes = append(notes, "One of "+values+".")
	}
	fmt.Fprintf(out, "| `%s` | %s | %s |\n", path, typeOf(schema), strings.Join(notes, " "))
	inner := schema
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		inner, path = *schema.Items.Schema, path+"[]"
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		inner, path = *schema.AdditionalProperties.Schema, path+".*"
	}
	for _, name := range slices.Sorted(maps.Keys(inner.Properties)) {
		field(out, path+"."+name, inner.Properties[name], slices.Contains(inner.Required, name))
	}
}

// valuesOf lists the values of an enumeration.
func valuesOf(enum []apiextensionsv1.JSON) string {
	var values []string
	for _, value := range enum {
		values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
	}
	return strings.Join(values, ", ")
}

// typeOf returns the type of a field as Kubernetes documents it.
func typeOf(schema apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString:
		return "integer or string"
	case schema.Items != nil && schema.Items.Schema != nil:
		return "list of " + typeOf(*schema.Items.Schema)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(*schema.AdditionalProperties.Schema)
	case schema.Type == "" || schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields && len(schema.Properties) == 0:
		return "any"
	}
	return cmp.Or(schema.Format, schema.Type)
}
