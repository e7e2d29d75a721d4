package openapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

const (
	// prefix begins references in the document.
	prefix = "#/components/schemas/"
)

// schemas are the types of the document. Those of CustomResourceDefinitions are the same, but for metadata, which has its fields here.
type schemas struct {
	parser *crd.Parser
	roots  map[string]*loader.Package
}

// load reads the packages that match the patterns, which have the types of the hooks.
func load(root string, patterns []string) (*schemas, error) {
	loaded, err := loader.LoadRootsWithConfig(&packages.Config{Dir: root}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", patterns, err)
	}
	registry := &markers.Registry{}
	if err := crdmarkers.Register(registry); err != nil {
		return nil, fmt.Errorf("registering markers: %w", err)
	}
	s := &schemas{roots: map[string]*loader.Package{}, parser: &crd.Parser{
		Collector: &markers.Collector{Registry: registry}, Checker: &loader.TypeChecker{}, AllowDangerousTypes: true,
	}}
	crd.AddKnownTypes(s.parser)
	s.parser.PackageOverrides["k8s.io/apimachinery/pkg/apis/meta/v1"] = metadata
	for _, p := range loaded {
		s.roots[p.PkgPath] = p
		s.parser.NeedPackage(p)
	}
	return s, nil
}

// metadata describes the types of metadata that are not encoded as their fields are; the others are parsed.
func metadata(p *crd.Parser, pkg *loader.Package) {
	p.Schemata[crd.TypeIdent{Name: "Time", Package: pkg}] = apiextensionsv1.JSONSchemaProps{Type: "string", Format: "date-time"}
	p.Schemata[crd.TypeIdent{Name: "Duration", Package: pkg}] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	p.Schemata[crd.TypeIdent{Name: "FieldsV1", Package: pkg}] = apiextensionsv1.JSONSchemaProps{Type: "object"}
	p.AddPackage(pkg)
}

// need makes a type part of the document, and returns a reference to it.
func (s *schemas) need(pkgPath, name string) (string, error) {
	pkg, ok := s.roots[pkgPath]
	if !ok {
		return "", fmt.Errorf("type %s: package %s is not one of %s", name, pkgPath, slices.Sorted(maps.Keys(s.roots)))
	}
	s.parser.NeedSchemaFor(crd.TypeIdent{Package: pkg, Name: name})
	return prefix + nameOf(pkgPath, name), nil
}

func nameOf(pkgPath, name string) string { return strings.ReplaceAll(pkgPath, "/", ".") + "." + name }

// components returns all types that are needed, and what they consist of. Types of strings, such as enumerations, are part of the
// types that have fields with them.
func (s *schemas) components() (map[string]apiextensionsv1.JSONSchemaProps, error) {
	out := map[string]apiextensionsv1.JSONSchemaProps{}
	for ident, props := range s.parser.Schemata {
		for _, problem := range ident.Package.Errors {
			// Types without their generated methods do not implement interfaces; they have a schema.
			if problem.Kind != packages.TypeError {
				return nil, fmt.Errorf("package %s: %w", ident.Package.PkgPath, problem)
			}
		}
		if inlined(&props) || embedded[ident.Name] {
			continue
		}
		finished, err := s.finish(ident, &props)
		if err != nil {
			return nil, fmt.Errorf("type %s: %w", ident, err)
		}
		out[nameOf(ident.Package.PkgPath, ident.Name)] = *finished
	}
	return out, nil
}

// embedded are the types that are only parts of others.
var embedded = map[string]bool{"TypeMeta": true, "CommonRequest": true, "CommonResponse": true, "CommonRetryResponse": true}

// inlined reports whether a type is a name for a string.
func inlined(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.Type == "string" && s.Format == "" && s.Ref == nil
}

// finish returns the schema of a type as the document has it. Each type has its references replaced, and embedded types merged.
func (s *schemas) finish(ident crd.TypeIdent, props *apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, error) {
	out := props.DeepCopy()
	if err := s.resolve(ident.Package, out); err != nil {
		return nil, err
	}
	if ident.Name == "JSONSchemaProps" {
		recurse(ident, out)
	}
	return out, nil
}

// resolve replaces the references of the parser, and merges what is embedded.
func (s *schemas) resolve(pkg *loader.Package, out *apiextensionsv1.JSONSchemaProps) error {
	embeds := out.AllOf
	out.AllOf = nil
	if out.Ref != nil {
		embeds = append(embeds, apiextensionsv1.JSONSchemaProps{Ref: out.Ref})
		out.Ref = nil
	}
	if out.AdditionalProperties != nil && out.AdditionalProperties.Schema != nil {
		if err := s.resolve(pkg, out.AdditionalProperties.Schema); err != nil {
			return err
		}
	}
	if out.Items != nil && out.Items.Schema != nil {
		if err := s.resolve(pkg, out.Items.Schema); err != nil {
			return err
		}
	}
	for name, property := range out.Properties {
		if err := s.resolve(pkg, &property); err != nil {
			return err
		}
		out.Properties[name] = property
	}
	// A field has one type; a type with fields embeds others.
	isField := len(embeds) == 1 && len(out.Properties) == 0
	for i := range embeds {
		if err := s.embed(pkg, &embeds[i], out, isField); err != nil {
			return err
		}
	}
	return nil
}

// embed merges what part refers to into out, or makes out, if it is a field, a reference to a type of the document.
func (s *schemas) embed(pkg *loader.Package, part, out *apiextensionsv1.JSONSchemaProps, isField bool) error {
	if part.Ref == nil {
		merge(part, out)
		return nil
	}
	name, pkgPath, err := crd.RefParts(*part.Ref)
	if err != nil {
		return fmt.Errorf("reference %s: %w", *part.Ref, err)
	}
	if pkgPath != "" {
		pkg = pkg.Imports()[pkgPath]
	}
	target, ok := s.parser.Schemata[crd.TypeIdent{Package: pkg, Name: name}]
	if !ok {
		return fmt.Errorf("reference %s: there is no such type", *part.Ref)
	}
	if isField && !embedded[name] && !inlined(&target) {
		ref := prefix + nameOf(pkg.PkgPath, name)
		out.Ref, out.Type = &ref, ""
		return nil
	}
	resolved := target.DeepCopy()
	if err := s.resolve(pkg, resolved); err != nil {
		return err
	}
	merge(resolved, out)
	return nil
}

// merge adds the fields of part to out.
func merge(part, out *apiextensionsv1.JSONSchemaProps) {
	out.Type, out.Enum = cmp.Or(out.Type, part.Type), append(out.Enum, part.Enum...)
	for name, property := range part.Properties {
		if out.Properties == nil {
			out.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		out.Properties[name] = property
	}
	out.Required = append(out.Required, part.Required...)
	slices.Sort(out.Required)
}

// recurse sets the fields of a schema that are schemas themselves. CustomResourceDefinitions cannot say that.
func recurse(ident crd.TypeIdent, out *apiextensionsv1.JSONSchemaProps) {
	ref := prefix + nameOf(ident.Package.PkgPath, ident.Name)
	self := &apiextensionsv1.JSONSchemaProps{Ref: &ref}
	for _, name := range []string{"additionalProperties", "items"} {
		out.Properties[name] = apiextensionsv1.JSONSchemaProps{Description: out.Properties[name].Description, Ref: &ref}
	}
	out.Properties["properties"] = apiextensionsv1.JSONSchemaProps{
		Description: out.Properties["properties"].Description, Type: "object",
		AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: self},
	}
}
