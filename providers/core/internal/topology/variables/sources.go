package variables

import (
	"context"
	"slices"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// The kinds of lists of overrides.
const (
	OfControlPlane      = "ControlPlane"
	OfMachineDeployment = "MachineDeployment"
	OfMachinePool       = "MachinePool"
)

// List is a list of values in a topology: the overrides of the control plane, or of workers with a name in the topology. The zero value is
// the list of the Cluster.
type List struct{ Kind, Name string }

// Sources are the sources of definitions that values are for, by their lists and positions: field definitionFrom, which only v1beta1 has. A
// value without one is for all definitions of its variable.
type Sources map[List][]string

// ReadSources returns the sources of the values of a Cluster.
func ReadSources(ctx context.Context, cluster *clusterv1.Cluster) (Sources, error) {
	older := &clusterv1beta1.Cluster{}
	found, err := conversion.Older(ctx, cluster, older, "definitionFrom")
	if !found || err != nil || older.Spec.Topology == nil {
		return nil, err
	}
	topology, out := older.Spec.Topology, Sources{}
	out.add(List{}, topology.Variables)
	if v := topology.ControlPlane.Variables; v != nil {
		out.add(List{Kind: OfControlPlane}, v.Overrides)
	}
	if topology.Workers == nil {
		return out, nil
	}
	for i := range topology.Workers.MachineDeployments {
		if t := &topology.Workers.MachineDeployments[i]; t.Variables != nil {
			out.add(List{OfMachineDeployment, t.Name}, t.Variables.Overrides)
		}
	}
	for i := range topology.Workers.MachinePools {
		if t := &topology.Workers.MachinePools[i]; t.Variables != nil {
			out.add(List{OfMachinePool, t.Name}, t.Variables.Overrides)
		}
	}
	return out, nil
}

func (s Sources) add(list List, values []clusterv1beta1.ClusterVariable) {
	for i := range values {
		if values[i].DefinitionFrom != "" {
			s.set(list, i, values[i].DefinitionFrom)
		}
	}
}

func (s Sources) set(list List, i int, source string) {
	if missing := i + 1 - len(s[list]); missing > 0 {
		s[list] = append(s[list], make([]string, missing)...)
	}
	s[list][i] = source
}

// At returns the source of a value; empty if it has none.
func (s Sources) At(list List, i int) string {
	if i < len(s[list]) {
		return s[list][i]
	}
	return ""
}

// clone returns a copy.
func (s Sources) clone() Sources {
	out := make(Sources, len(s))
	for list, sources := range s {
		out[list] = slices.Clone(sources)
	}
	return out
}
