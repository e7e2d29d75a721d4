// Package feature holds the feature gates: their names, defaults and stages, and the set of them that one
// running component was started with.
//
// Gates are a value that is passed to whoever asks, not a global: several components, each with gates of its
// own, may run in one process. What a gate switches on does not belong here.
package feature

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
)

// Feature is the name of a gate as users write it in --feature-gates.
type Feature = featuregate.Feature

const (
	// MachinePool is the MachinePool kind. Beta since v1.7, on by default.
	MachinePool Feature = "MachinePool"
	// ClusterResourceSet is applying resources to new workload clusters. Beta since v0.4, on by default.
	ClusterResourceSet Feature = "ClusterResourceSet"
	// ClusterTopology is ClusterClass and clusters managed through it. Alpha since v0.4, off by default.
	ClusterTopology Feature = "ClusterTopology"
	// RuntimeSDK is runtime extensions and their hooks. Alpha since v1.2, off by default.
	RuntimeSDK Feature = "RuntimeSDK"
	// KubeadmBootstrapFormatIgnition is Ignition as a format of kubeadm's bootstrap data. Alpha since v1.1, off
	// by default.
	KubeadmBootstrapFormatIgnition Feature = "KubeadmBootstrapFormatIgnition"
	// MachineSetPreflightChecks delays creating Machines until the control plane is ready for them. Alpha since
	// v1.5, off by default.
	MachineSetPreflightChecks Feature = "MachineSetPreflightChecks"
)

// specs is the stage and default of every gate.
func specs() map[Feature]featuregate.FeatureSpec {
	return map[Feature]featuregate.FeatureSpec{
		MachinePool:                    {Default: true, PreRelease: featuregate.Beta},
		ClusterResourceSet:             {Default: true, PreRelease: featuregate.Beta},
		ClusterTopology:                {Default: false, PreRelease: featuregate.Alpha},
		RuntimeSDK:                     {Default: false, PreRelease: featuregate.Alpha},
		KubeadmBootstrapFormatIgnition: {Default: false, PreRelease: featuregate.Alpha},
		MachineSetPreflightChecks:      {Default: false, PreRelease: featuregate.Alpha},
	}
}

// Gates is what one component was started with. It is written while flags are parsed and only read afterwards.
// A nil *Gates has everything at its default.
type Gates struct {
	gate featuregate.MutableFeatureGate
	used []Feature
}

// New returns all gates at their defaults. Used names the ones that the component acts upon: they are what its
// --help shows. The other gates are accepted as well, so that one list can be given to every component.
func New(used ...Feature) *Gates {
	gate := featuregate.NewFeatureGate()
	if err := gate.Add(specs()); err != nil {
		panic(fmt.Sprintf("the table of feature gates is inconsistent: %v", err))
	}
	return &Gates{gate: gate, used: used}
}

// Enabled tells whether a gate is on. A gate that does not exist is off.
func (g *Gates) Enabled(f Feature) bool {
	spec, known := specs()[f]
	if g == nil || !known {
		return spec.Default
	}
	return g.gate.Enabled(f)
}

// Uses tells whether the component acts upon a gate, whatever its value.
func (g *Gates) Uses(f Feature) bool {
	return g != nil && slices.Contains(g.used, f)
}

// Set changes gates from a list "Name=true,Other=false", as --feature-gates does. The names AllAlpha and AllBeta
// stand for every gate of that stage which the list does not name itself.
func (g *Gates) Set(list string) error {
	return g.gate.Set(list)
}

// AddFlag registers --feature-gates.
func (g *Gates) AddFlag(fs *pflag.FlagSet) {
	fs.Var(value{g}, "feature-gates",
		"A set of key=value pairs that switch features on or off. Options are:\n"+strings.Join(g.help(), "\n"))
}

func (g *Gates) help() []string {
	lines := []string{
		"AllAlpha=true|false (ALPHA - default=false)",
		"AllBeta=true|false (BETA - default=false)",
	}
	all := specs()
	for _, f := range slices.Sorted(maps.Keys(all)) {
		if g.Uses(f) {
			spec := all[f]
			lines = append(lines, spec.HelpString(f, false))
		}
	}
	return lines
}

// value is Gates as a pflag.Value.
type value struct{ gates *Gates }

// Set implements pflag.Value.
func (v value) Set(list string) error { return v.gates.Set(list) }

// Type implements pflag.Value.
func (v value) Type() string { return "mapStringBool" }

// String is the default that --help prints: none, for the options carry theirs.
func (v value) String() string { return "" }
