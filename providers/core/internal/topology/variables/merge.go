package variables

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Source is a set of variables and where they are defined.
type Source struct {
	// From is clusterv1.VariableDefinitionFromInline for the variables of the class itself (spec.variables), or the name of
	// the patch whose extension defines them.
	From string
	// Variables are the definitions, valid and with distinct names.
	Variables []clusterv1.ClusterClassVariable
}

// Merge computes status.variables of a class. The result is deterministic: variables are in the order of their first definition,
// and definitions in the order of the sources. Definitions conflict if their schemas differ, or only some are required.
func Merge(sources ...Source) ([]clusterv1.ClusterClassStatusVariable, error) {
	var out []clusterv1.ClusterClassStatusVariable
	position := map[string]int{}
	for _, source := range sources {
		for i := range source.Variables {
			variable := source.Variables[i].DeepCopy()
			at, known := position[variable.Name]
			if !known {
				at = len(out)
				position[variable.Name] = at
				out = append(out, clusterv1.ClusterClassStatusVariable{Name: variable.Name})
			}
			out[at].Definitions = append(out[at].Definitions, clusterv1.ClusterClassStatusVariableDefinition{
				From:                      source.From,
				Required:                  ptr.To(ptr.Deref(variable.Required, false)),
				DeprecatedV1Beta1Metadata: variable.DeprecatedV1Beta1Metadata,
				Schema:                    variable.Schema,
			})
		}
	}
	for i := range out {
		conflict, err := conflicting(out[i].Definitions)
		if err != nil {
			return nil, fmt.Errorf("variable %q: %w", out[i].Name, err)
		}
		out[i].DefinitionsConflict = ptr.To(conflict)
	}
	return out, nil
}

func conflicting(definitions []clusterv1.ClusterClassStatusVariableDefinition) (bool, error) {
	if len(definitions) < 2 {
		return false, nil
	}
	first, err := canonical(&definitions[0].Schema)
	if err != nil {
		return false, fmt.Errorf("schema from %q: %w", definitions[0].From, err)
	}
	for i := range definitions[1:] {
		other := &definitions[i+1]
		schema, err := canonical(&other.Schema)
		if err != nil {
			return false, fmt.Errorf("schema from %q: %w", other.From, err)
		}
		if ptr.Deref(other.Required, false) != ptr.Deref(definitions[0].Required, false) || !reflect.DeepEqual(schema, first) {
			return true, nil
		}
	}
	return false, nil
}

// canonical returns a schema in a form that does not depend on white space and the order of keys in raw values, and on whether what is
// false is set.
func canonical(s *clusterv1.VariableSchema) (any, error) {
	s = s.DeepCopy()
	dropFalse(&s.OpenAPIV3Schema)
	encoded, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var out any
	if err := json.Unmarshal(encoded, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// dropFalse unsets what is false in a schema, at every depth.
func dropFalse(s *clusterv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	for _, flag := range []**bool{
		&s.UniqueItems, &s.ExclusiveMaximum, &s.ExclusiveMinimum, &s.XPreserveUnknownFields, &s.XIntOrString,
	} {
		if !ptr.Deref(*flag, false) {
			*flag = nil
		}
	}
	for name, property := range s.Properties {
		dropFalse(&property)
		s.Properties[name] = property
	}
	for _, one := range []*clusterv1.JSONSchemaProps{s.AdditionalProperties, s.Items, s.Not} {
		dropFalse(one)
	}
	for _, list := range [][]clusterv1.JSONSchemaProps{s.AllOf, s.OneOf, s.AnyOf} {
		for i := range list {
			dropFalse(&list[i])
		}
	}
}
