package variables

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Definitions are the compiled variables of a class. They are immutable and safe for concurrent use.
type Definitions struct {
	ordered []variable
	byName  map[string]*variable
	sources Sources
}

// With returns the definitions for the values of a Cluster with these sources.
func (d *Definitions) With(sources Sources) *Definitions {
	out := *d
	out.sources = sources.clone()
	return &out
}

// Sources returns the sources of the values, also of those that DefaultConflicting added.
func (d *Definitions) Sources() Sources { return d.sources }

type variable struct {
	name        string
	conflict    bool
	definitions []definition
}

type definition struct {
	from     string
	required bool
	schema   *schema
}

// Compile compiles status.variables of a class. That costs far more than using the result: cache it until the class changes.
func Compile(class *clusterv1.ClusterClass) (*Definitions, error) {
	d := &Definitions{byName: map[string]*variable{}}
	path := field.NewPath("status", "variables")
	for i := range class.Status.Variables {
		status := &class.Status.Variables[i]
		compiled := variable{name: status.Name, conflict: ptr.Deref(status.DefinitionsConflict, false)}
		for j := range status.Definitions {
			source := &status.Definitions[j]
			at := path.Index(i).Child("definitions").Index(j).Child("schema", "openAPIV3Schema")
			s, errs := compile(&source.Schema.OpenAPIV3Schema, at)
			if len(errs) > 0 {
				return nil, fmt.Errorf("ClusterClass %s/%s, variable %q: %w", class.Namespace, class.Name, status.Name, errs.ToAggregate())
			}
			compiled.definitions = append(compiled.definitions,
				definition{from: source.From, required: ptr.Deref(source.Required, false), schema: s})
		}
		d.ordered = append(d.ordered, compiled)
	}
	for i := range d.ordered {
		d.byName[d.ordered[i].name] = &d.ordered[i]
	}
	return d, nil
}

// find returns the definition of a value with this source, nil if there is none. If definitions do not conflict, any of them applies to
// a value without a source.
func (v *variable) find(from string) *definition {
	if from == "" {
		if v.conflict || len(v.definitions) == 0 {
			return nil
		}
		return &v.definitions[0]
	}
	i := slices.IndexFunc(v.definitions, func(d definition) bool { return d.from == from })
	if i < 0 {
		return nil
	}
	return &v.definitions[i]
}

func (v *variable) sources() []string {
	out := make([]string, 0, len(v.definitions))
	for i := range v.definitions {
		out = append(out, v.definitions[i].from)
	}
	return out
}

// unset returns the sources of values that a Cluster can add for a variable, given those that are set: none if a value without a source is
// set, "" alone if such a value can be, and otherwise every source without a value.
func (v *variable) unset(set []string) []string {
	if len(v.definitions) == 0 || slices.Contains(set, "") {
		return nil
	}
	if len(set) == 0 && !v.conflict {
		return []string{""}
	}
	return slices.DeleteFunc(v.sources(), func(from string) bool { return slices.Contains(set, from) })
}

// sourcesByName returns the sources of the values of each variable in a list.
func (d *Definitions) sourcesByName(values []clusterv1.ClusterVariable, list List) map[string][]string {
	out := make(map[string][]string, len(values))
	for i := range values {
		out[values[i].Name] = append(out[values[i].Name], d.sources.At(list, i))
	}
	return out
}

// overrides calls do for every list of overrides, of the control plane and of workers.
func overrides(
	topology *clusterv1.Topology, path *field.Path, do func([]clusterv1.ClusterVariable, List, *field.Path) field.ErrorList,
) field.ErrorList {
	errs := do(topology.ControlPlane.Variables.Overrides, List{Kind: OfControlPlane}, path.Child("controlPlane", "variables", "overrides"))
	workers := path.Child("workers")
	for i := range topology.Workers.MachineDeployments {
		t := &topology.Workers.MachineDeployments[i]
		errs = append(errs, do(t.Variables.Overrides, List{OfMachineDeployment, t.Name},
			workers.Child("machineDeployments").Index(i).Child("variables", "overrides"))...)
	}
	for i := range topology.Workers.MachinePools {
		t := &topology.Workers.MachinePools[i]
		errs = append(errs, do(t.Variables.Overrides, List{OfMachinePool, t.Name},
			workers.Child("machinePools").Index(i).Child("variables", "overrides"))...)
	}
	return errs
}

// Default defaults the values of a topology in place: nested fields of all values, and variables of the Cluster that have no
// value. Overrides are defaulted, but not added; path is the path of the topology. For conflicting definitions, see DefaultConflicting.
//
// Values of unknown variables are not changed: Validate reports them.
func (d *Definitions) Default(topology *clusterv1.Topology, path *field.Path) field.ErrorList {
	errs := d.defaultNested(topology.Variables, List{}, path.Child("variables"))
	errs = append(errs, d.addDefaults(topology, path, func(source string) bool { return source == "" })...)
	return append(errs, overrides(topology, path, d.defaultNested)...)
}

// DefaultConflicting adds values for variables of the Cluster that have conflicting definitions, each for one source only. They cannot be
// stored: v1beta2 has no field for the source. The definitions must be those of With.
func (d *Definitions) DefaultConflicting(topology *clusterv1.Topology, path *field.Path) field.ErrorList {
	return d.addDefaults(topology, path, func(source string) bool { return source != "" })
}

// addDefaults adds values with selected sources for variables of the Cluster that have none.
func (d *Definitions) addDefaults(topology *clusterv1.Topology, path *field.Path, selected func(source string) bool) field.ErrorList {
	var errs field.ErrorList
	set := d.sourcesByName(topology.Variables, List{})
	for i := range d.ordered {
		v := &d.ordered[i]
		for _, from := range v.unset(set[v.name]) {
			if !selected(from) {
				continue
			}
			value, err := v.find(from).schema.defaultValue(nil)
			if err != nil {
				errs = append(errs, field.InternalError(path.Child("variables"), fmt.Errorf("default of variable %q: %w", v.name, err)))
				continue
			}
			if value == nil {
				continue
			}
			if from != "" {
				d.sources.set(List{}, len(topology.Variables), from)
			}
			topology.Variables = append(topology.Variables, clusterv1.ClusterVariable{Name: v.name, Value: *value})
		}
	}
	return errs
}

// defaultNested defaults the nested fields of values.
func (d *Definitions) defaultNested(values []clusterv1.ClusterVariable, list List, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range values {
		v := d.byName[values[i].Name]
		if v == nil {
			continue
		}
		definition := v.find(d.sources.At(list, i))
		if definition == nil {
			continue
		}
		value, err := definition.schema.defaultValue(&values[i].Value)
		if err != nil {
			errs = append(errs, field.Invalid(path.Index(i).Child("value"), string(values[i].Value.Raw),
				fmt.Sprintf("variable %q: %v", values[i].Name, err)))
			continue
		}
		if value != nil && !sameJSON(value, &values[i].Value) {
			values[i].Value = *value
		}
	}
	return errs
}

// sameJSON reports whether two raw values are equal apart from formatting, which is preserved.
func sameJSON(a, b *apiextensionsv1.JSON) bool {
	left, errLeft := decode(a)
	right, errRight := decode(b)
	return errLeft == nil && errRight == nil && equal(left, right)
}

// equal reports whether two decoded values are equal.
func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
