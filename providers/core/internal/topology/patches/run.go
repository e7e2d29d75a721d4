package patches

import (
	"fmt"
	"maps"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
)

// run is one application of an Engine.
type run struct {
	cluster *clusterv1.Cluster
	class   *clusterv1.ClusterClass
	items   []*item
	sources variables.Sources
	builtin map[string]any             // builtin.cluster
	defined map[string]map[string]bool // source -> variables that it defines
	inline  map[string]any             // values of the Cluster for inline patches, once computed
	budget  *gotemplate.Budget
}

func newRun(in *Input) *run {
	r := &run{cluster: in.Cluster, class: in.Class, items: in.items(), sources: in.Sources,
		builtin: clusterBuiltin(in.Cluster), defined: map[string]map[string]bool{}, budget: gotemplate.NewBudget(runWork)}
	for i := range in.Class.Status.Variables {
		variable := &in.Class.Status.Variables[i]
		for j := range variable.Definitions {
			from := variable.Definitions[j].From
			if r.defined[from] == nil {
				r.defined[from] = map[string]bool{}
			}
			r.defined[from][variable.Name] = true
		}
	}
	return r
}

// commit writes the results into the targets, all or none.
func (r *run) commit() error {
	specs, metadata := make([]map[string]any, len(r.items)), make([]map[string]map[string]string, len(r.items))
	for i, item := range r.items {
		var err error
		if specs[i], err = item.patchedSpec(); err != nil {
			return err
		}
		if metadata[i], err = item.patchedMetadata(); err != nil {
			return err
		}
	}
	for i, item := range r.items {
		if specs[i] != nil {
			item.target.Object["spec"] = specs[i]
		}
		item.setMetadata(metadata[i])
	}
	return nil
}

// visible returns the values of a list that are visible to a patch; from is clusterv1.VariableDefinitionFromInline or the name of the
// patch. A value with a source is visible to that source only.
func (r *run) visible(values []clusterv1.ClusterVariable, list variables.List, from string) []clusterv1.ClusterVariable {
	var out []clusterv1.ClusterVariable
	for i := range values {
		source := r.sources.At(list, i)
		if (source == "" || source == from) && r.defined[from][values[i].Name] {
			out = append(out, values[i])
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
		global, err := decode(r.visible(r.cluster.Spec.Topology.Variables, variables.List{}, clusterv1.VariableDefinitionFromInline))
		if err != nil {
			return nil, err
		}
		r.inline = global
	}
	overrides, err := decode(r.visible(i.overrides, i.list(), clusterv1.VariableDefinitionFromInline))
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
