package variables

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Validate validates the values of a topology, after Default; path is the path of the topology. Required variables must have a
// value for the Cluster; workers inherit it. Rules about changes are not evaluated: see ValidateUpdate.
func (d *Definitions) Validate(ctx context.Context, topology *clusterv1.Topology, path *field.Path) field.ErrorList {
	return d.ValidateUpdate(ctx, topology, nil, path)
}

// ValidateUpdate is Validate for a change of a topology. Rules with oldSelf are evaluated for values that differ from the previous ones of
// the same variable, source and list. previous may be nil.
func (d *Definitions) ValidateUpdate(
	ctx context.Context, topology *clusterv1.Topology, previous *Previous, path *field.Path,
) field.ErrorList {
	old := previous.values()
	validate := func(values []clusterv1.ClusterVariable, list List, path *field.Path) field.ErrorList {
		return d.validate(ctx, values, list, old, path)
	}
	errs := validate(topology.Variables, List{}, path.Child("variables"))
	errs = append(errs, d.missing(topology.Variables, path.Child("variables"))...)
	return append(errs, overrides(topology, path, validate)...)
}

// Previous are the values of a Cluster before a request.
type Previous struct {
	Topology *clusterv1.Topology
	Sources  Sources
}

// ReadPrevious returns the values of a Cluster before a request, nil if old is nil or has no topology.
func ReadPrevious(ctx context.Context, old *clusterv1.Cluster) (*Previous, error) {
	if old == nil || !old.Spec.Topology.IsDefined() {
		return nil, nil
	}
	sources, err := ReadSources(ctx, old)
	return &Previous{Topology: &old.Spec.Topology, Sources: sources}, err
}

// slot is where a topology has a value.
type slot struct {
	list       List
	name, from string
}

// values returns the values by where they are.
func (p *Previous) values() map[slot]*apiextensionsv1.JSON {
	if p == nil {
		return nil
	}
	out := map[slot]*apiextensionsv1.JSON{}
	add := func(values []clusterv1.ClusterVariable, list List, _ *field.Path) field.ErrorList {
		for i := range values {
			out[slot{list, values[i].Name, p.Sources.At(list, i)}] = &values[i].Value
		}
		return nil
	}
	add(p.Topology.Variables, List{}, nil)
	overrides(p.Topology, nil, add)
	return out
}

// missing reports required variables without a value. With conflicting definitions, those with a default are not missing: see
// DefaultConflicting.
func (d *Definitions) missing(values []clusterv1.ClusterVariable, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	set := d.sourcesByName(values, List{})
	for i := range d.ordered {
		v := &d.ordered[i]
		for _, from := range v.unset(set[v.name]) {
			if !v.find(from).required || from != "" && v.find(from).schema.hasDefault() {
				continue
			}
			message := fmt.Sprintf("variable %q is required: set a value for it", v.name)
			if from != "" {
				message = fmt.Sprintf("variable %q is required by %q: set a value for it with definitionFrom %q", v.name, from, from)
			}
			errs = append(errs, field.Required(path, message))
		}
	}
	return errs
}

// validate validates a list of values.
func (d *Definitions) validate(
	ctx context.Context, values []clusterv1.ClusterVariable, list List, old map[slot]*apiextensionsv1.JSON, path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	set := d.sourcesByName(values, list)
	seen := map[slot]bool{}
	for i := range values {
		value, at := &values[i], path.Index(i)
		id := slot{list, value.Name, d.sources.At(list, i)}
		if seen[id] {
			errs = append(errs, field.Duplicate(at, duplicateName(id.name, id.from)))
			continue
		}
		seen[id] = true
		definition, err := d.definition(value.Name, id.from, set[value.Name], at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found := definition.schema.validate(ctx, &value.Value, old[id], at.Child("value"))
		for _, err := range found {
			err.Detail = fmt.Sprintf("variable %q: %s", value.Name, err.Detail)
		}
		errs = append(errs, found...)
	}
	return errs
}

func duplicateName(name, source string) string {
	if source == "" {
		return name
	}
	return name + " (definitionFrom " + source + ")"
}

// definition returns the definition of a value with a name and a source; set has the sources of all values of the same variable in the
// same list.
func (d *Definitions) definition(name, source string, set []string, path *field.Path) (*definition, *field.Error) {
	v := d.byName[name]
	if v == nil {
		return nil, field.Required(path.Child("name"), fmt.Sprintf(
			"no definition for variable %q: the ClusterClass defines %s; remove the value or define the variable", name, quoted(d.names())))
	}
	from := path.Child("definitionFrom")
	if source == "" && len(set) > 1 && slices.ContainsFunc(set, func(s string) bool { return s != "" }) {
		return nil, field.Invalid(from, "", fmt.Sprintf(
			"variable %q has values with and without definitionFrom: set it on all of them, or keep one value without it", v.name))
	}
	found := v.find(source)
	switch {
	case found != nil:
		return found, nil
	case source == "":
		return nil, field.Required(from, fmt.Sprintf(
			"variable %q has conflicting definitions: set one value for each of %s", v.name, quoted(v.sources())))
	default:
		return nil, field.Invalid(from, source, fmt.Sprintf(
			"variable %q is defined by %s only", v.name, quoted(v.sources())))
	}
}

func (d *Definitions) names() []string {
	out := make([]string, 0, len(d.ordered))
	for i := range d.ordered {
		out = append(out, d.ordered[i].name)
	}
	return out
}
