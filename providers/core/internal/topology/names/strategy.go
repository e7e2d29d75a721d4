package names

import (
	"cmp"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/validation"

	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// Default templates.
const (
	controlPlaneTemplate      = "{{ .cluster.name }}-{{ .random }}"
	machineDeploymentTemplate = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"
	machinePoolTemplate       = "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}"
)

// Data is the input of a template.
type Data struct {
	// Cluster is the name of the Cluster: .cluster.name.
	Cluster string
	// Topology is the name of the workers in the topology: .machineDeployment.topologyName or
	// .machinePool.topologyName. It is empty for a control plane.
	Topology string
	// Random are the characters that make the name unique: .random.
	Random string
}

// Sample returns data for validating templates.
func Sample() Data { return Data{Cluster: "cluster", Topology: "topology", Random: "bcdfg"} }

// Strategy computes a name from a template. An empty template means the default.
type Strategy func(template string, d Data) (string, error)

// ControlPlaneStrategy is the Strategy of control plane objects.
func ControlPlaneStrategy(source string, d Data) (string, error) {
	return render(source, controlPlaneTemplate, d, nil)
}

// MachineDeploymentStrategy is the Strategy of MachineDeployments.
func MachineDeploymentStrategy(source string, d Data) (string, error) {
	return render(source, machineDeploymentTemplate, d, map[string]any{"machineDeployment": map[string]string{"topologyName": d.Topology}})
}

// MachinePoolStrategy is the Strategy of MachinePools.
func MachinePoolStrategy(source string, d Data) (string, error) {
	return render(source, machinePoolTemplate, d, map[string]any{"machinePool": map[string]string{"topologyName": d.Topology}})
}

// Limits of a template: bytes rendered, and work in units of gotemplate.Budget. Names are truncated further.
const (
	maxRendered = 1 << 10
	maxWork     = 1 << 16
)

// render executes a template. A name that is too long for a label value is truncated and ends with the random characters, so
// that it stays unique.
func render(source, fallback string, d Data, values map[string]any) (string, error) {
	parser := gotemplate.NewParser(gotemplate.Options{Name: "name", Strict: true, Output: maxRendered, Work: maxWork})
	parsed, err := parser.Parse(cmp.Or(source, fallback))
	if err != nil {
		return "", fmt.Errorf("naming strategy: %w", err)
	}
	data := map[string]any{"cluster": map[string]string{"name": d.Cluster}, "random": d.Random}
	maps.Copy(data, values)
	out, err := parsed.Execute(data, nil)
	if err != nil {
		return "", fmt.Errorf("naming strategy: %w", err)
	}
	name := string(out)
	if len(name) > validation.LabelValueMaxLength {
		name = naming.Limit(name, d.Random)
	}
	return name, nil
}
