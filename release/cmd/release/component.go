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

// component is the content of providers/<component>/config/component.yaml.
type component struct {
	// Label is the provider label, which also names the folder in a repository.
	Label string `json:"label"`
	// Type is the provider type: core, bootstrap, control-plane, infrastructure, ipam, runtime-extension or addon; or operator, which is no
	// provider.
	Type      string `json:"type"`
	Namespace string `json:"namespace"`
	// Prefix is the name prefix of every object of the component.
	Prefix string `json:"prefix"`
	Image  string `json:"image"`
	// FeatureGates maps a gate to the variable, with its default, that sets it.
	FeatureGates map[string]string `json:"featureGates,omitempty"`
	// WithoutLeader is set if all replicas do the same: then there is no leader election.
	WithoutLeader bool `json:"withoutLeader,omitempty"`
	// WithoutWebhook is set if the manager serves no webhooks: then it needs neither a Service nor a certificate.
	WithoutWebhook bool `json:"withoutWebhook,omitempty"`
	// Temporary is set if the manager needs a directory for temporary files.
	Temporary bool `json:"temporary,omitempty"`
	// Args are flags in addition to those of all managers.
	Args []string `json:"args,omitempty"`
	// Aggregate is the label of ClusterRoles that are aggregated into the manager's; empty: none.
	Aggregate string `json:"aggregate,omitempty"`
	// PodIP passes the pod's address in POD_IP.
	PodIP bool `json:"podIP,omitempty"`
	// DockerSocket mounts the socket of Docker on the host, which requires root.
	DockerSocket bool `json:"dockerSocket,omitempty"`
	// ComponentsFile is the name of the components file if it is not "<type>-components.yaml". It must match clusterctl's
	// default URL of the provider.
	ComponentsFile string `json:"componentsFile,omitempty"`

	folder string
}

// loadComponents reads the configuration of all components of the repository at root.
func loadComponents(root string) ([]component, error) {
	files, err := filepath.Glob(filepath.Join(root, "providers", "*", "config", "component.yaml"))
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

// isProvider reports whether clusterctl installs the component. Users apply the manifests of others as they are.
func (c component) isProvider() bool { return c.Type != "operator" }

// labels are on all objects of the component.
func (c component) labels() map[string]string {
	if c.isProvider() {
		return map[string]string{"cluster.x-k8s.io/provider": c.Label}
	}
	return map[string]string{"clusterctl.cluster.x-k8s.io/core": c.Label}
}

// isDefault reports whether the component is installed by default. The manifests of all default components are also in
// one file.
func (c component) isDefault() bool {
	return slices.Contains([]string{"core", "bootstrap", "control-plane"}, c.Type)
}

// ProviderType is the type as in clusterctl's configuration.
func (c component) ProviderType() string {
	return map[string]string{
		"core":              "CoreProvider",
		"bootstrap":         "BootstrapProvider",
		"control-plane":     "ControlPlaneProvider",
		"infrastructure":    "InfrastructureProvider",
		"ipam":              "IPAMProvider",
		"runtime-extension": "RuntimeExtensionProvider",
		"addon":             "AddonProvider",
	}[c.Type]
}
