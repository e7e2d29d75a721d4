package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// component is what config/<component>/component.yaml says of a manager.
type component struct {
	// Label is the provider label, which also names the folder in a repository.
	Label string `json:"label"`
	// Type is the provider type: core, bootstrap, control-plane or infrastructure.
	Type      string `json:"type"`
	Namespace string `json:"namespace"`
	// Prefix begins the name of every object of the component.
	Prefix string `json:"prefix"`
	Image  string `json:"image"`
	// FeatureGates maps a gate to the variable, with its default, that sets it.
	FeatureGates map[string]string `json:"featureGates,omitempty"`
	// Args are flags beyond those that all managers have.
	Args []string `json:"args,omitempty"`
	// Aggregate is the label of ClusterRoles that add to the manager's rights; empty: none do.
	Aggregate string `json:"aggregate,omitempty"`
	// PodIP passes the pod's address in POD_IP.
	PodIP bool `json:"podIP,omitempty"`
	// ComponentsFile is the name of the components file where it is not "<type>-components.yaml": clusterctl's default URL of
	// the provider has it.
	ComponentsFile string `json:"componentsFile,omitempty"`

	folder string
}

func loadComponents(config string) ([]component, error) {
	files, err := filepath.Glob(filepath.Join(config, "*", "component.yaml"))
	if err != nil {
		return nil, err
	}
	var out []component
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c := component{folder: filepath.Dir(file)}
		if err := yaml.UnmarshalStrict(raw, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// GateList is the value of --feature-gates, with variables.
func (c component) GateList() string {
	var gates []string
	for _, gate := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		gates = append(gates, fmt.Sprintf("%s=${%s}", gate, c.FeatureGates[gate]))
	}
	return strings.Join(gates, ",")
}

// Name is the provider's name: its label without the type.
func (c component) Name() string {
	return strings.TrimPrefix(c.Label, c.Type+"-")
}

// File is the name of the components file.
func (c component) File() string { return cmp.Or(c.ComponentsFile, c.Type+"-components.yaml") }

// isDefault reports whether the component is installed without being asked for: the manifests of all these are one file,
// too.
func (c component) isDefault() bool { return c.Type != "infrastructure" }

// ProviderType is the type as clusterctl's configuration spells it.
func (c component) ProviderType() string {
	return map[string]string{
		"core":           "CoreProvider",
		"bootstrap":      "BootstrapProvider",
		"control-plane":  "ControlPlaneProvider",
		"infrastructure": "InfrastructureProvider",
	}[c.Type]
}
