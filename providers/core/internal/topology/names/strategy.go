package names

import (
	"cmp"
	"fmt"
	"maps"

	"sigs.k8s.io/cluster-api/providers/internal/nametemplate"
)

// Default templates.
const (
	infrastructureTemplate    = "{{ .cluster.name }}-{{ .random }}"
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

// InfrastructureStrategy is the Strategy of infrastructure objects of Clusters.
func InfrastructureStrategy(source string, d Data) (string, error) {
	return render(source, infrastructureTemplate, d, nil)
}

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

// render executes a template.
func render(source, fallback string, d Data, values map[string]any) (string, error) {
	data := nametemplate.Named("cluster", d.Cluster)
	maps.Copy(data, values)
	name, err := nametemplate.Render(cmp.Or(source, fallback), data, d.Random)
	if err != nil {
		return "", fmt.Errorf("naming strategy: %w", err)
	}
	return name, nil
}
