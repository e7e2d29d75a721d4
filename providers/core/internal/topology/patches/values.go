package patches

import (
	"fmt"
	"maps"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
)

// visible returns the values that are visible to a patch; from is clusterv1.VariableDefinitionFromInline or the name of the
// patch. A value with definitionFrom is visible to that source only.
func (r *run) visible(values []clusterv1.ClusterVariable, from string) []clusterv1.ClusterVariable {
	var out []clusterv1.ClusterVariable
	for i := range values {
		value := &values[i]
		if (value.DefinitionFrom == "" || value.DefinitionFrom == from) && r.defined[from][value.Name] {
			out = append(out, *value)
		}
	}
	return out
}

// inlineValues returns the values for inline patches of an item: the variables of the Cluster, overridden by those of the
// workers, and the builtin variable.
func (r *run) inlineValues(i *item) (map[string]any, error) {
	if i.inline != nil {
		return i.inline, nil
	}
	if r.inline == nil {
		global, err := decode(r.visible(r.cluster.Spec.Topology.Variables, clusterv1.VariableDefinitionFromInline))
		if err != nil {
			return nil, err
		}
		r.inline = global
	}
	overrides, err := decode(r.visible(i.overrides, clusterv1.VariableDefinitionFromInline))
	if err != nil {
		return nil, err
	}
	values := maps.Clone(r.inline)
	maps.Copy(values, overrides)
	builtin := map[string]any{"cluster": r.builtin}
	maps.Copy(builtin, i.builtin)
	values[variables.Builtin] = builtin
	i.inline = values
	return values, nil
}

func decode(values []clusterv1.ClusterVariable) (map[string]any, error) {
	out := make(map[string]any, len(values)+1)
	for i := range values {
		value, err := parseJSON(values[i].Value.Raw)
		if err != nil {
			return nil, fmt.Errorf("value of variable %q: %w", values[i].Name, err)
		}
		out[values[i].Name] = value
	}
	return out, nil
}
