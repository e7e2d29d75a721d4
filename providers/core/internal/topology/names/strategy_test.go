package names

import (
	"strings"
	"testing"
)

func TestStrategies(t *testing.T) {
	long := strings.Repeat("x", 70)
	tests := []struct {
		reason    string
		compute   Strategy
		template  string
		data      Data
		want, err string
	}{
		{"default of control planes", ControlPlaneStrategy, "", Sample(), "cluster-bcdfg", ""},
		{"default of MachineDeployments", MachineDeploymentStrategy, "", Sample(), "cluster-topology-bcdfg", ""},
		{"default of MachinePools", MachinePoolStrategy, "", Sample(), "cluster-topology-bcdfg", ""},
		{"custom template", ControlPlaneStrategy, "cp-{{ .cluster.name }}-{{ .random }}", Sample(), "cp-cluster-bcdfg", ""},
		{"random characters are optional", MachineDeploymentStrategy, "{{ .machineDeployment.topologyName }}", Sample(), "topology", ""},
		{"a name that is too long for a label value", ControlPlaneStrategy, "", Data{Cluster: long, Random: "bcdfg"}, long[:58] + "bcdfg", ""},
		{"the longest name that fits", ControlPlaneStrategy, "", Data{Cluster: long[:57], Random: "bcdfg"}, long[:57] + "-bcdfg", ""},
		{"an invalid template", ControlPlaneStrategy, "{{ .cluster", Sample(), "", "naming strategy: not a valid Go template: template: name:1: unclosed action"},
		{"a name of gigabytes", MachinePoolStrategy, `{{ printf "%999999d%999999d%999999d%999999d" 1 2 3 4 }}`, Sample(), "", "naming strategy: the template exceeds the limit of work and data: make lists, loops and values smaller"},
		{"a template that calls itself", ControlPlaneStrategy, `{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, Sample(), "",
			"naming strategy: calls between templates are nested more than 100 levels deep: recursion must end"},
		{"an endless loop", ControlPlaneStrategy, `{{ range 9000000000000000000 }}{{ end }}`, Sample(), "",
			"naming strategy: the template exceeds the limit of work and data: make lists, loops and values smaller"},
		{"a name that is too long to render", ControlPlaneStrategy, `{{ range 1000 }}xxx{{ end }}`, Sample(), "", "naming strategy: the template renders more than 1024 bytes"},
		{"an undefined value", ControlPlaneStrategy, "{{ .machineDeployment.topologyName }}", Sample(), "", `naming strategy: template: name:1:21: executing "name" at <.machineDeployment.topologyName>: map has no entry for key "machineDeployment"`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := tt.compute(tt.template, tt.data)
			if got != tt.want || message(err) != tt.err {
				t.Errorf("%s: %q, %q; want %q, %q", tt.reason, got, message(err), tt.want, tt.err)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
