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
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

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
	rules      *cel.Validator               // of the value itself; nil if it has no rules
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
	return compileInternal(internal, path)
}

// compileInternal is compile for a converted schema.
func compileInternal(internal *apiextensions.JSONSchemaProps, path *field.Path) (*schema, field.ErrorList) {
	structural, err := structuralschema.NewStructural(wrap(internal))
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	value := structural.Properties[wrapper]
	return &schema{
		structural: structural, validator: validator, rules: cel.NewValidator(&value, false, celconfig.PerCallLimit),
		defaults: hasDefaults(structural),
	}, nil
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

// validate validates a value; path is the path of the value, old the value before the request, nil if there is none.
func (s *schema) validate(ctx context.Context, raw, old *apiextensionsv1.JSON, path *field.Path) field.ErrorList {
	value, err := decode(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, string(raw.Raw), err.Error())}
	}
	return s.validateDecoded(ctx, value, old, path)
}

func (s *schema) validateDecoded(ctx context.Context, value any, old *apiextensionsv1.JSON, path *field.Path) field.ErrorList {
	if err := checkEffort(value, s.structural, path); err != nil {
		return field.ErrorList{err}
	}
	errs := tidy(validation.ValidateCustomResource(path, value, s.validator))
	errs = append(errs, unknownFields(value, s.structural, path)...)
	if len(errs) > 0 {
		return errs
	}
	return s.obey(ctx, value, old, path)
}

// tidy cleans up and sorts the errors of the library, which repeat the value in the message, have ".[0]" for indexes, and are in
// random order.
func tidy(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		err.Field = strings.ReplaceAll(err.Field, ".[", "[")
		if _, message, found := strings.Cut(err.Detail, " in body "); found {
			err.Detail = message
		}
		// Those of combinators begin with the path in quotes.
		if _, message, found := strings.Cut(err.Detail, `" must`); found && strings.HasPrefix(err.Detail, `"`) {
			err.Detail = "must" + message
		}
		if err.Type == field.ErrorTypeRequired {
			err.Detail = "required by the schema"
		}
	}
	return sorted(errs)
}

// sorted sorts errors by field and text.
func sorted(errs field.ErrorList) field.ErrorList {
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
	if errs := checkRules(&value, path); len(errs) > 0 {
		return errs
	}
	root := field.NewPath("root")
	errs, err = defaulting.ValidateDefaults(ctx, root, structural, false, true)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return append(tidy(unwrapped(errs, root, path)), validateSamples(ctx, internal, path)...)
}

// validateStructural reports where a schema is not structural. The library requires an object at the root, hence the wrapper,
// which is removed from the paths.
func validateStructural(wrapped *structuralschema.Structural, path *field.Path) field.ErrorList {
	root := field.NewPath("root")
	return unwrapped(structuralschema.ValidateStructural(root, wrapped), root, path)
}

// unwrapped replaces the path of the wrapped value below root with path.
func unwrapped(errs field.ErrorList, root, path *field.Path) field.ErrorList {
	prefix := root.Child("properties").Key(wrapper).String()
	for _, err := range errs {
		err.Field = path.String() + strings.TrimPrefix(err.Field, prefix)
	}
	return errs
}

// validateSamples validates the examples and enums of a schema, at every depth. The library validates defaults.
func validateSamples(ctx context.Context, s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	errs := validateOwnSamples(ctx, s, path)
	if s.Items != nil {
		errs = append(errs, validateSamples(ctx, s.Items.Schema, path.Child("items"))...)
	}
	if s.AdditionalProperties != nil {
		errs = append(errs, validateSamples(ctx, s.AdditionalProperties.Schema, path.Child("additionalProperties"))...)
	}
	for _, name := range propertyNames(s.Properties) {
		property := s.Properties[name]
		errs = append(errs, validateSamples(ctx, &property, path.Child("properties").Key(name))...)
	}
	return errs
}

// validateOwnSamples validates the example and the enum of one schema. Enum values are validated by the schema without the enum:
// they are in it by definition, and checking that takes quadratic time.
func validateOwnSamples(ctx context.Context, s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Example != nil {
		errs = append(errs, validateValues(ctx, s, path, func(check func(any, *field.Path)) { check(*s.Example, path.Child("example")) })...)
	}
	if len(s.Enum) == 0 {
		return errs
	}
	withoutEnum := *s
	withoutEnum.Enum = nil
	return append(errs, validateValues(ctx, &withoutEnum, path, func(check func(any, *field.Path)) {
		for i, value := range s.Enum {
			check(value, path.Child("enum").Index(i))
		}
	})...)
}

// validateValues compiles a schema once and validates all values that each passes to check.
func validateValues(
	ctx context.Context, s *apiextensions.JSONSchemaProps, path *field.Path, each func(check func(value any, at *field.Path)),
) field.ErrorList {
	compiled, failed := compileInternal(s, path)
	if len(failed) > 0 {
		return failed
	}
	var errs field.ErrorList
	each(func(value any, at *field.Path) {
		errs = append(errs, compiled.validateDecoded(ctx, value, nil, at)...)
	})
	return errs
}

func propertyNames[T any](properties map[string]T) []string {
	return slices.Sorted(maps.Keys(properties))
}
