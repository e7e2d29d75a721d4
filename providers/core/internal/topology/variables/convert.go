package variables

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// convert converts a variable's schema, a subset of OpenAPI, into the type that the Kubernetes libraries use.
func convert(s *clusterv1.JSONSchemaProps, path *field.Path) (*apiextensions.JSONSchemaProps, field.ErrorList) {
	errs := checkType(s, path)
	if s.AdditionalProperties != nil && len(s.Properties) > 0 {
		errs = append(errs, field.Forbidden(path.Child("additionalProperties"),
			"properties and additionalProperties are mutually exclusive: an object has either known fields or arbitrary keys"))
	}
	out := scalars(s)
	out.XPreserveUnknownFields = preserve(s)
	errs = append(errs, convertSamples(s, out, path)...)
	var ruleErrs field.ErrorList
	out.XValidations, ruleErrs = convertRules(s.XValidations, path.Child(rulesField))
	errs = append(errs, ruleErrs...)
	errs = append(errs, checkMetadata(&s.XMetadata, path.Child("x-metadata"))...)
	errs = append(errs, convertChildren(s, out, path, convert)...)
	return out, append(errs, convertCombinators(s, out, path)...)
}

// checkType requires a type, except where a value may be an integer or a string, or anything.
func checkType(s *clusterv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	if s.Type != "" && ptr.Deref(s.XIntOrString, false) {
		return field.ErrorList{field.Forbidden(path.Child("type"), "must be empty if x-kubernetes-int-or-string is true")}
	}
	if s.Type == "" && (ptr.Deref(s.XIntOrString, false) || ptr.Deref(s.XPreserveUnknownFields, false)) || slices.Contains(types, s.Type) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path.Child("type"), s.Type, types)}
}

// checkMetadata validates the metadata of a schema, which is for other programs.
func checkMetadata(m *clusterv1.VariableSchemaMetadata, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(m.Labels, path.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(m.Annotations, path.Child("annotations"))...)
}

// combinator is a list of schemas that a value is validated by in addition.
type combinator struct {
	name string
	in   []clusterv1.JSONSchemaProps
}

func combinators(s *clusterv1.JSONSchemaProps) []combinator {
	return []combinator{{"allOf", s.AllOf}, {"anyOf", s.AnyOf}, {"oneOf", s.OneOf}}
}

func convertCombinators(s *clusterv1.JSONSchemaProps, out *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, c := range combinators(s) {
		var list []apiextensions.JSONSchemaProps
		for i := range c.in {
			converted, found := convertPart(&c.in[i], path.Child(c.name).Index(i))
			errs = append(errs, found...)
			list = append(list, *converted)
		}
		switch c.name {
		case "allOf":
			out.AllOf = list
		case "anyOf":
			out.AnyOf = list
		case "oneOf":
			out.OneOf = list
		}
	}
	if s.Not != nil {
		converted, found := convertPart(s.Not, path.Child("not"))
		errs = append(errs, found...)
		out.Not = converted
	}
	return errs
}

// outsideOnly is the error of fields that combinators must not have.
const outsideOnly = "must not be set within allOf, anyOf, oneOf and not: set it outside of them"

// convertPart is convert for a schema within allOf, anyOf, oneOf or not. The structural schema is outside of them, so that no type is
// required: the library reports what must not be set.
func convertPart(s *clusterv1.JSONSchemaProps, path *field.Path) (*apiextensions.JSONSchemaProps, field.ErrorList) {
	out := scalars(s)
	errs := convertSamples(s, out, path)
	if len(s.XValidations) > 0 {
		errs = append(errs, field.Forbidden(path.Child(rulesField), outsideOnly))
	}
	if len(s.XMetadata.Labels) > 0 || len(s.XMetadata.Annotations) > 0 {
		errs = append(errs, field.Forbidden(path.Child("x-metadata"), outsideOnly))
	}
	errs = append(errs, convertChildren(s, out, path, convertPart)...)
	return out, append(errs, convertCombinators(s, out, path)...)
}

func scalars(s *clusterv1.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	return &apiextensions.JSONSchemaProps{
		Type:             s.Type,
		Description:      s.Description,
		Required:         s.Required,
		MaxItems:         s.MaxItems,
		MinItems:         s.MinItems,
		UniqueItems:      ptr.Deref(s.UniqueItems, false),
		Format:           s.Format,
		MaxLength:        s.MaxLength,
		MinLength:        s.MinLength,
		Pattern:          s.Pattern,
		Maximum:          float(s.Maximum),
		ExclusiveMaximum: ptr.Deref(s.ExclusiveMaximum, false),
		Minimum:          float(s.Minimum),
		ExclusiveMinimum: ptr.Deref(s.ExclusiveMinimum, false),
		MaxProperties:    s.MaxProperties,
		MinProperties:    s.MinProperties,
		XIntOrString:     ptr.Deref(s.XIntOrString, false),
	}
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// preserve reports whether fields that are not in the schema are accepted. A schema without any fields is free-form:
// "type: object" alone accepts any object.
func preserve(s *clusterv1.JSONSchemaProps) *bool {
	freeForm := s.Type == "object" && len(s.Properties) == 0 && s.AdditionalProperties == nil
	if !freeForm && !ptr.Deref(s.XPreserveUnknownFields, false) {
		return nil
	}
	yes := true
	return &yes
}

func convertSamples(s *clusterv1.JSONSchemaProps, out *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	out.Default, errs = sample(s.Default, path.Child("default"))
	example, exampleErrs := sample(s.Example, path.Child("example"))
	out.Example = example
	errs = append(errs, exampleErrs...)
	for i := range s.Enum {
		value, enumErrs := sample(&s.Enum[i], path.Child("enum").Index(i))
		errs = append(errs, enumErrs...)
		if value != nil {
			out.Enum = append(out.Enum, *value)
		}
	}
	return errs
}

func sample(raw *apiextensionsv1.JSON, path *field.Path) (*apiextensions.JSON, field.ErrorList) {
	if raw == nil {
		return nil, nil
	}
	value, err := decode(raw)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, string(raw.Raw), err.Error())}
	}
	converted := apiextensions.JSON(value)
	return &converted, nil
}

func convertChildren(
	s *clusterv1.JSONSchemaProps, out *apiextensions.JSONSchemaProps, path *field.Path,
	convert func(*clusterv1.JSONSchemaProps, *field.Path) (*apiextensions.JSONSchemaProps, field.ErrorList),
) field.ErrorList {
	var errs field.ErrorList
	if s.Items != nil {
		items, itemErrs := convert(s.Items, path.Child("items"))
		errs = append(errs, itemErrs...)
		out.Items = &apiextensions.JSONSchemaPropsOrArray{Schema: items}
	}
	if s.AdditionalProperties != nil {
		values, valueErrs := convert(s.AdditionalProperties, path.Child("additionalProperties"))
		errs = append(errs, valueErrs...)
		out.AdditionalProperties = &apiextensions.JSONSchemaPropsOrBool{Allows: true, Schema: values}
	}
	if len(s.Properties) > 0 {
		out.Properties = make(map[string]apiextensions.JSONSchemaProps, len(s.Properties))
	}
	for _, name := range propertyNames(s.Properties) {
		child := s.Properties[name]
		property, propertyErrs := convert(&child, path.Child("properties").Key(name))
		errs = append(errs, propertyErrs...)
		out.Properties[name] = *property
	}
	return errs
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	out := make([]string, 0, len(names))
	for _, name := range names {
		out = append(out, fmt.Sprintf("%q", name))
	}
	return strings.Join(out, ", ")
}
