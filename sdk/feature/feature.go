// Package feature has the feature gates: their names, defaults and stages, and the values that one
// running component was started with.
//
// Gates are passed as a value, not a global variable: several components, each with gates of its
// own, may run in one process. The features themselves do not belong here.
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
	// MachinePool enables the MachinePool kind. Beta since v1.7, on by default.
	MachinePool Feature = "MachinePool"
	// ClusterResourceSet enables applying resources to new workload clusters. Beta since v0.4, on by default.
	ClusterResourceSet Feature = "ClusterResourceSet"
	// ClusterTopology enables ClusterClass and clusters managed through it. Alpha since v0.4, off by default.
	ClusterTopology Feature = "ClusterTopology"
	// RuntimeSDK enables runtime extensions and their hooks. Alpha since v1.2, off by default.
	RuntimeSDK Feature = "RuntimeSDK"
	// KubeadmBootstrapFormatIgnition enables Ignition as a format of bootstrap data. Alpha since v1.1, off
	// by default.
	KubeadmBootstrapFormatIgnition Feature = "KubeadmBootstrapFormatIgnition"
	// MachineSetPreflightChecks delays the creation of Machines until the control plane is ready for them. Alpha since
	// v1.5, off by default.
	MachineSetPreflightChecks Feature = "MachineSetPreflightChecks"
	// InPlaceUpdates enables updates of Machines in place by runtime extensions. Alpha since v1.12, off by default. It requires RuntimeSDK.
	InPlaceUpdates Feature = "InPlaceUpdates"
	// MachineTaintPropagation enables taints of Machines, which are set on their Nodes. Alpha since v1.12, off by default.
	MachineTaintPropagation Feature = "MachineTaintPropagation"
	// ClusterTopologyWorkerVersionPinning enables Kubernetes versions of groups of workers that are lower than that of their Cluster's
	// topology. Alpha, off by default.
	ClusterTopologyWorkerVersionPinning Feature = "ClusterTopologyWorkerVersionPinning"
)

// Gates of v1.8 to v1.14 that nothing depends on: they are accepted, so that arguments of those releases work.
const (
	// PriorityQueue is without effect: queues always have priorities.
	PriorityQueue Feature = "PriorityQueue"
	// ReconcilerRateLimiting is without effect.
	ReconcilerRateLimiting Feature = "ReconcilerRateLimiting"
	// ConsiderVolumeAttachments is without effect: deletions always wait for VolumeAttachments.
	ConsiderVolumeAttachments Feature = "MachineWaitForVolumeDetachConsiderVolumeAttachments"
)

// specs returns the stage and default of every gate.
func specs() map[Feature]featuregate.FeatureSpec {
	return map[Feature]featuregate.FeatureSpec{
		MachinePool:                         {Default: true, PreRelease: featuregate.Beta},
		ClusterResourceSet:                  {Default: true, PreRelease: featuregate.Beta},
		ClusterTopology:                     {Default: false, PreRelease: featuregate.Alpha},
		RuntimeSDK:                          {Default: false, PreRelease: featuregate.Alpha},
		KubeadmBootstrapFormatIgnition:      {Default: false, PreRelease: featuregate.Alpha},
		MachineSetPreflightChecks:           {Default: false, PreRelease: featuregate.Alpha},
		PriorityQueue:                       {Default: true, PreRelease: featuregate.Beta},
		ReconcilerRateLimiting:              {Default: true, PreRelease: featuregate.Beta},
		ConsiderVolumeAttachments:           {Default: true, PreRelease: featuregate.GA},
		InPlaceUpdates:                      {Default: false, PreRelease: featuregate.Alpha},
		MachineTaintPropagation:             {Default: false, PreRelease: featuregate.Alpha},
		ClusterTopologyWorkerVersionPinning: {Default: false, PreRelease: featuregate.Alpha},
	}
}

// Gates are the feature gates of one component. They are set while flags are parsed, and only read afterwards.
// A nil *Gates has all gates at their defaults.
type Gates struct {
	gate featuregate.MutableFeatureGate
	used []Feature
}

// New returns all gates at their defaults. used are the gates that the component supports, which its
// --help shows. Other gates are accepted, too, so that one list can be used for all components.
func New(used ...Feature) *Gates {
	gate := featuregate.NewFeatureGate()
	if err := gate.Add(specs()); err != nil {
		panic(fmt.Sprintf("the table of feature gates is inconsistent: %v", err))
	}
	return &Gates{gate: gate, used: used}
}

// Enabled reports whether a gate is on. Unknown gates are off.
func (g *Gates) Enabled(f Feature) bool {
	spec, known := specs()[f]
	if g == nil || !known {
		return spec.Default
	}
	return g.gate.Enabled(f)
}

// Ineffective returns the gates that are off although nothing depends on them.
func (g *Gates) Ineffective() []Feature {
	return slices.DeleteFunc([]Feature{PriorityQueue, ReconcilerRateLimiting, ConsiderVolumeAttachments}, g.Enabled)
}

// Uses reports whether the component supports a gate, on or off.
func (g *Gates) Uses(f Feature) bool {
	return g != nil && slices.Contains(g.used, f)
}

// Set sets gates from a list such as "Name=true,Other=false", the value of --feature-gates. The names AllAlpha and AllBeta
// stand for all gates of that stage that are not in the list themselves.
func (g *Gates) Set(list string) error {
	return g.gate.Set(list)
}

// AddFlag adds the flag --feature-gates.
func (g *Gates) AddFlag(fs *pflag.FlagSet) {
	fs.Var(value{g}, "feature-gates",
		"A set of key=value pairs that turn features on or off. Options are:\n"+strings.Join(g.help(), "\n"))
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

// value implements pflag.Value for Gates.
type value struct{ gates *Gates }

// Set implements pflag.Value.
func (v value) Set(list string) error { return v.gates.Set(list) }

// Type implements pflag.Value.
func (v value) Type() string { return "mapStringBool" }

// String returns the default for --help: none, because each gate has its own.
func (v value) String() string { return "" }
