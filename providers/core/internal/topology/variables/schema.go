package variables

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// wrapper is the only property of the object that wraps a value, because the structural schema libraries require objects, and a
// variable may have any type. It is also the name of the field in a Cluster, so that reported paths are correct.
const wrapper = "value"

// types are the supported values of "type".
var types = []string{"array", "boolean", "integer", "number", "object", "string"}

// schema is the compiled schema of one variable.
type schema struct {
	structural *structuralschema.Structural // of the object {value: ...}
	validator  validation.SchemaValidator   // of the value itself
	defaults   bool                         // whether a field at any depth has a default
}

// compile prepares a schema for use. It returns only errors that prevent that; validateSchema returns all errors of a schema.
func compile(props *clusterv1.JSONSchemaProps, path *field.Path) (*schema, field.ErrorList) {
	if errs := checkLimits(props, path); len(errs) > 0 {
		return nil, errs
	}
	internal, errs := convert(props, path)
	if len(errs) > 0 {
		return nil, errs
	}
	structural, err := structuralschema.NewStructural(wrap(internal))
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return &schema{structural: structural, validator: validator, defaults: hasDefaults(structural)}, nil
}

func wrap(s *apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	return &apiextensions.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]apiextensions.JSONSchemaProps{wrapper: *s},
	}
}

func hasDefaults(s *structuralschema.Structural) bool {
	if s == nil {
		return false
	}
	if s.Default.Object != nil || hasDefaults(s.Items) {
		return true
	}
	if s.AdditionalProperties != nil && hasDefaults(s.AdditionalProperties.Structural) {
		return true
	}
	for _, property := range s.Properties {
		if hasDefaults(&property) {
			return true
		}
	}
	return false
}

// defaultValue defaults a value. A nil value is one that is not set; the result is nil, too, if the schema has no default for the
// whole value.
func (s *schema) defaultValue(raw *apiextensionsv1.JSON) (*apiextensionsv1.JSON, error) {
	if !s.defaults {
		return raw, nil
	}
	object := map[string]any{}
	if raw != nil {
		value, err := decode(raw)
		if err != nil {
			return nil, err
		}
		object[wrapper] = value
	}
	defaulting.Default(object, s.structural)
	value, set := object[wrapper]
	if !set {
		return nil, nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return &apiextensionsv1.JSON{Raw: encoded}, nil
}

// hasDefault reports whether the whole value has a default.
func (s *schema) hasDefault() bool { return s.structural.Properties[wrapper].Default.Object != nil }

// validate validates a value; path is the path of the value.
func (s *schema) validate(raw *apiextensionsv1.JSON, path *field.Path) field.ErrorList {
	value, err := decode(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, string(raw.Raw), err.Error())}
	}
	if err := checkEffort(value, s.structural, path); err != nil {
		return field.ErrorList{err}
	}
	errs := tidy(validation.ValidateCustomResource(path, value, s.validator))
	return append(errs, unknownFields(value, s.structural, path)...)
}

// tidy cleans up and sorts the errors of the library, which repeat the value in the message, have ".[0]" for indexes, and are in
// random order.
func tidy(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		err.Field = strings.ReplaceAll(err.Field, ".[", "[")
		if _, message, found := strings.Cut(err.Detail, " in body "); found {
			err.Detail = message
		}
		if err.Type == field.ErrorTypeRequired {
			err.Detail = "required by the schema"
		}
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Detail, b.Detail))
	})
	return errs
}

// unknownFields reports fields that are not in the schema, and removes them from the value.
func unknownFields(value any, wrapped *structuralschema.Structural, path *field.Path) field.ErrorList {
	unknown := pruning.PruneWithOptions(map[string]any{wrapper: value}, wrapped, false,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	var errs field.ErrorList
	for _, name := range unknown {
		at := strings.TrimPrefix(strings.TrimPrefix(name, wrapper), ".")
		errs = append(errs, field.Invalid(path, at, fmt.Sprintf("field %q is not in the schema of the variable", at)))
	}
	return errs
}

func decode(raw *apiextensionsv1.JSON) (any, error) {
	if len(raw.Raw) == 0 {
		return nil, fmt.Errorf("a value is required")
	}
	var value any
	if err := utiljson.Unmarshal(raw.Raw, &value); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return value, nil
}

// validateSchema validates the schema of a variable.
func validateSchema(ctx context.Context, props *clusterv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	if errs := checkLimits(props, path); len(errs) > 0 {
		return errs
	}
	internal, errs := convert(props, path)
	if len(errs) > 0 {
		return errs
	}
	structural, err := structuralschema.NewStructural(wrap(internal))
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	if errs := validateStructural(structural, path); len(errs) > 0 {
		return errs
	}
	value := structural.Properties[wrapper]
	errs, err = defaulting.ValidateDefaults(ctx, path, &value, false, true)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return append(tidy(errs), validateSamples(internal, path)...)
}

// validateStructural reports where a schema is not structural. The library requires an object at the root, hence the wrapper,
// which is removed from the paths.
func validateStructural(wrapped *structuralschema.Structural, path *field.Path) field.ErrorList {
	root := field.NewPath("root")
	prefix := root.Child("properties").Key(wrapper).String()
	errs := structuralschema.ValidateStructural(root, wrapped)
	for _, err := range errs {
		err.Field = path.String() + strings.TrimPrefix(err.Field, prefix)
	}
	return errs
}

// validateSamples validates the examples and enums of a schema, at every depth. The library validates defaults.
func validateSamples(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	errs := validateOwnSamples(s, path)
	if s.Items != nil {
		errs = append(errs, validateSamples(s.Items.Schema, path.Child("items"))...)
	}
	if s.AdditionalProperties != nil {
		errs = append(errs, validateSamples(s.AdditionalProperties.Schema, path.Child("additionalProperties"))...)
	}
	for _, name := range propertyNames(s.Properties) {
		property := s.Properties[name]
		errs = append(errs, validateSamples(&property, path.Child("properties").Key(name))...)
	}
	return errs
}

// validateOwnSamples validates the example and the enum of one schema. Enum values are validated by the schema without the enum:
// they are in it by definition, and checking that takes quadratic time.
func validateOwnSamples(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Example != nil {
		errs = append(errs, validateValues(s, path, func(check func(any, *field.Path)) { check(*s.Example, path.Child("example")) })...)
	}
	if len(s.Enum) == 0 {
		return errs
	}
	withoutEnum := *s
	withoutEnum.Enum = nil
	return append(errs, validateValues(&withoutEnum, path, func(check func(any, *field.Path)) {
		for i, value := range s.Enum {
			check(value, path.Child("enum").Index(i))
		}
	})...)
}

// validateValues compiles a schema once and validates all values that each passes to check.
func validateValues(s *apiextensions.JSONSchemaProps, path *field.Path, each func(check func(value any, at *field.Path))) field.ErrorList {
	validator, _, err := validation.NewSchemaValidator(s)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	structural, err := structuralschema.NewStructural(wrap(s))
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	var errs field.ErrorList
	each(func(value any, at *field.Path) {
		if err := checkEffort(value, structural, at); err != nil {
			errs = append(errs, err)
			return
		}
		errs = append(errs, tidy(validation.ValidateCustomResource(at, value, validator))...)
		errs = append(errs, unknownFields(value, structural, at)...)
	})
	return errs
}

func propertyNames[T any](properties map[string]T) []string {
	return slices.Sorted(maps.Keys(properties))
}
