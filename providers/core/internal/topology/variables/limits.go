package variables

import (
	"errors"
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/expansion"
)

const (
	// maxDepth is the maximum nesting of a schema.
	maxDepth = 100
	// maxEffort limits the effort of validating a value, to about a second.
	maxEffort = 1 << 28
)

// checkLimits reports nesting and patterns that would make the schema arbitrarily expensive to use.
func checkLimits(s *clusterv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	return checkLimitsBelow(s, path, 0)
}

func checkLimitsBelow(s *clusterv1.JSONSchemaProps, path *field.Path, depth int) field.ErrorList {
	if depth > maxDepth {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the schema is nested more than %d levels deep", maxDepth))}
	}
	var errs field.ErrorList
	var tooBig *expansion.RegexpTooBigError
	if _, err := expansion.RegexpSize(s.Pattern); errors.As(err, &tooBig) {
		errs = append(errs, field.Invalid(path.Child("pattern"), field.OmitValueType{}, err.Error()))
	}
	if s.Items != nil {
		errs = append(errs, checkLimitsBelow(s.Items, path.Child("items"), depth+1)...)
	}
	if s.AdditionalProperties != nil {
		errs = append(errs, checkLimitsBelow(s.AdditionalProperties, path.Child("additionalProperties"), depth+1)...)
	}
	for _, name := range propertyNames(s.Properties) {
		property := s.Properties[name]
		errs = append(errs, checkLimitsBelow(&property, path.Child("properties").Key(name), depth+1)...)
	}
	for _, c := range combinators(s) {
		for i := range c.in {
			errs = append(errs, checkLimitsBelow(&c.in[i], path.Child(c.name).Index(i), depth+1)...)
		}
	}
	if s.Not != nil {
		errs = append(errs, checkLimitsBelow(s.Not, path.Child("not"), depth+1)...)
	}
	return errs
}

// effort estimates the steps of validating a value that are not linear in its size: matching patterns, and comparing the
// elements of lists with uniqueItems.
type effort struct {
	// patterns caches the sizes of expressions.
	patterns map[string]int64
}

// of returns the estimate for a value. A float cannot overflow.
func (e effort) of(value any, s *structuralschema.Structural) (steps float64) {
	if s == nil {
		return 0
	}
	for _, part := range parts(s.ValueValidation) {
		steps += e.of(value, structuralOf(part))
	}
	switch value := value.(type) {
	case string:
		if s.ValueValidation != nil && s.ValueValidation.Pattern != "" {
			steps += float64(len(value)) * float64(e.size(s.ValueValidation.Pattern))
		}
	case []any:
		if s.ValueValidation != nil && s.ValueValidation.UniqueItems {
			steps += float64(len(value)) * size(value)
		}
		for _, item := range value {
			steps += e.of(item, s.Items)
		}
	case map[string]any:
		for name, item := range value {
			if property, ok := s.Properties[name]; ok {
				steps += e.of(item, &property)
			} else if s.AdditionalProperties != nil {
				steps += e.of(item, s.AdditionalProperties.Structural)
			}
		}
	}
	return steps
}

// parts returns the schemas within allOf, anyOf, oneOf and not.
func parts(v *structuralschema.ValueValidation) []*structuralschema.NestedValueValidation {
	if v == nil {
		return nil
	}
	var out []*structuralschema.NestedValueValidation
	for _, list := range [][]structuralschema.NestedValueValidation{v.AllOf, v.AnyOf, v.OneOf} {
		for i := range list {
			out = append(out, &list[i])
		}
	}
	if v.Not != nil {
		out = append(out, v.Not)
	}
	return out
}

// structuralOf returns a part as a schema.
func structuralOf(part *structuralschema.NestedValueValidation) *structuralschema.Structural {
	out := &structuralschema.Structural{ValueValidation: &part.ValueValidation}
	if part.Items != nil {
		out.Items = structuralOf(part.Items)
	}
	if part.AdditionalProperties != nil {
		out.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: structuralOf(part.AdditionalProperties)}
	}
	if len(part.Properties) > 0 {
		out.Properties = make(map[string]structuralschema.Structural, len(part.Properties))
	}
	for name, property := range part.Properties {
		out.Properties[name] = *structuralOf(&property)
	}
	return out
}

func (e effort) size(pattern string) int64 {
	known, ok := e.patterns[pattern]
	if !ok {
		known, _ = expansion.RegexpSize(pattern) // 0 for an invalid expression: it matches nothing
		e.patterns[pattern] = known
	}
	return known
}

// size returns about how many parts a value has.
func size(value any) float64 {
	total := 1.0
	switch value := value.(type) {
	case string:
		total += float64(len(value)) / 16
	case []any:
		for _, item := range value {
			total += size(item)
		}
	case map[string]any:
		for _, item := range value {
			total += 1 + size(item)
		}
	}
	return total
}

// checkEffort rejects a value that would take too long to validate.
func checkEffort(value any, wrapped *structuralschema.Structural, path *field.Path) *field.Error {
	e := effort{patterns: map[string]int64{}}
	if e.of(map[string]any{wrapper: value}, wrapped) <= maxEffort {
		return nil
	}
	return field.Invalid(path, field.OmitValueType{},
		"too large to be validated: make strings with a pattern and lists with uniqueItems shorter")
}
