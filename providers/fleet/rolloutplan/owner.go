package rolloutplan

import (
	"bytes"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// FieldManager is the field manager of the controller of ClusterRollouts.
const FieldManager = "capi-clusterrollout"

// takesBack reports whether a field manager may take changes back by itself: all but that of rollouts, those of topology controllers, and
// the commands of people, clusterctl and kubectl, which apply when they are run.
func takesBack(manager string) bool {
	switch manager {
	case FieldManager, "capi-topology", "clusterctl", "kubectl":
		return false
	}
	return true
}

// Owner returns the field manager that applies one of the fields of a Cluster that a change sets to another value, such as a GitOps
// controller, which would take the change back; empty if there is none.
func Owner(cluster *clusterv1.Cluster, change *fleetv1.RolloutChange) string {
	_, manager := owned(cluster, change)
	return manager
}

// field is a field that a change sets, and its paths in the API versions.
type field struct {
	name  string
	paths []fieldpath.Path
	// variable is the name of a variable, if it is one.
	variable string
}

// owned returns the first field of a change that a manager applies, and the manager.
func owned(cluster *clusterv1.Cluster, change *fleetv1.RolloutChange) (name, manager string) {
	fields := changedBy(cluster, change)
	for _, e := range cluster.ManagedFields {
		if e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != "" || e.FieldsV1 == nil || !takesBack(e.Manager) {
			continue
		}
		set := &fieldpath.Set{}
		if set.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
			continue
		}
		for _, f := range fields {
			if f.in(set) {
				return f.name, e.Manager
			}
		}
	}
	return "", ""
}

// changedBy returns the fields that a change sets to another value.
func changedBy(cluster *clusterv1.Cluster, change *fleetv1.RolloutChange) []field {
	var fields []field
	if change.ClassRef.Name != "" && !Matches(&fleetv1.RolloutChange{ClassRef: change.ClassRef}, cluster) {
		fields = append(fields, field{name: "spec.topology.classRef", paths: []fieldpath.Path{
			topology("classRef"), topology("classRef", "name"), topology("classRef", "namespace"), topology("class"), topology("classNamespace"),
		}})
	}
	if change.Version != "" && !Matches(&fleetv1.RolloutChange{Version: change.Version}, cluster) {
		fields = append(fields, field{name: "spec.topology.version", paths: []fieldpath.Path{topology("version")}})
	}
	for _, v := range change.Variables {
		if !Matches(&fleetv1.RolloutChange{Variables: []fleetv1.RolloutVariable{v}}, cluster) {
			fields = append(fields, field{name: fmt.Sprintf("spec.topology.variables[%s]", v.Name), variable: v.Name})
		}
	}
	return fields
}

func topology(names ...string) fieldpath.Path {
	path := fieldpath.MakePathOrDie("spec", "topology")
	for _, name := range names {
		path = append(path, fieldpath.PathElement{FieldName: &name})
	}
	return path
}

// in reports whether the field is in a set.
func (f field) in(set *fieldpath.Set) bool {
	if slices.ContainsFunc(f.paths, set.Has) {
		return true
	}
	if f.variable == "" {
		return false
	}
	items, variables := set, topology("variables")
	for _, element := range variables {
		items = items.WithPrefix(element)
	}
	if items.Empty() {
		return set.Has(variables) // It is one field.
	}
	found := false
	items.Iterate(func(path fieldpath.Path) { found = found || len(path) > 0 && isVariable(path[0], f.variable) })
	return found
}

// isVariable reports whether an item of a list of variables has a name. Its key may also have where the variable is defined.
func isVariable(item fieldpath.PathElement, name string) bool {
	if item.Key == nil {
		return false
	}
	for _, key := range *item.Key {
		if key.Name == "name" && key.Value.IsString() && key.Value.AsString() == name {
			return true
		}
	}
	return false
}
