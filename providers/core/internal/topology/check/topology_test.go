package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestTopology(t *testing.T) {
	tests := []struct {
		reason, topology string
		want             []string
	}{
		{"the topology of the documentation", `
controlPlane: {replicas: 3, metadata: {labels: {cpLabel: cpLabelValue}, annotations: {cpAnnotation: cpAnnotationValue}}}
workers: {machineDeployments: [{class: default-worker, name: md-0, replicas: 4, metadata: {labels: {mdLabel: mdLabelValue}}, failureDomain: region}]}`, nil},
		{"names of workers are unique per kind", `
workers:
  machineDeployments: [{class: a, name: a}, {class: a, name: a}]
  machinePools: [{class: a, name: a}]`, []string{`spec.topology.workers.machineDeployments[1].name: Duplicate value: "a"`}},
		{"workers require names", `{workers: {machinePools: [{class: a, name: ""}]}}`, []string{`spec.topology.workers.machinePools[0].name: Required value: the name is required`}},
		{"names must be valid label values", `{workers: {machineDeployments: [{class: a, name: a/b}]}}`,
			[]string{`spec.topology.workers.machineDeployments[0].name: Invalid value: "a/b": must be a valid label value: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`}},
		{"labels and annotations are validated", `
controlPlane: {metadata: {labels: {"": a}}}
workers: {machinePools: [{class: a, name: a, metadata: {annotations: {"/": a}}}]}`, []string{
			`spec.topology.controlPlane.metadata.labels: Invalid value: "": name part must be non-empty`,
			`spec.topology.controlPlane.metadata.labels: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			`spec.topology.workers.machinePools[0].metadata.annotations: Invalid value: "/": prefix part must be non-empty`,
			`spec.topology.workers.machinePools[0].metadata.annotations: Invalid value: "/": name part must be non-empty`,
			`spec.topology.workers.machinePools[0].metadata.annotations: Invalid value: "/": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			topology := parseYAML[clusterv1.Topology](t, tt.topology)
			if diff := cmp.Diff(tt.want, texts(Topology(&topology, field.NewPath("spec", "topology")))); diff != "" {
				t.Errorf("%s: errors (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestTopologyOf(t *testing.T) {
	const check = `checks: {unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 300}]}`
	without := func(s *clusterv1.ClusterClassSpec) {
		s.ControlPlane.HealthCheck = clusterv1.ControlPlaneClassHealthCheck{}
		s.Workers.MachineDeployments[0].HealthCheck = clusterv1.MachineDeploymentClassHealthCheck{}
	}
	tests := []struct {
		reason, topology string
		change           func(*clusterv1.ClusterClassSpec)
		want             []string
	}{
		{"defined worker classes", `{workers: {machineDeployments: [{class: default-worker, name: a}], machinePools: [{class: default-pool, name: a}]}}`, nil, nil},
		{"undefined worker classes; each kind has its own", `{workers: {machineDeployments: [{class: default-pool, name: a}], machinePools: [{class: default-worker, name: a}]}}`, nil, []string{
			`spec.topology.workers.machineDeployments[0].class: Invalid value: "default-pool": ClusterClass "class" does not define this class of workers`,
			`spec.topology.workers.machinePools[0].class: Invalid value: "default-worker": ClusterClass "class" does not define this class of workers`,
		}},
		{"health checks defined by the class", `{controlPlane: {healthCheck: {enabled: true}}, workers: {machineDeployments: [{class: default-worker, name: a, healthCheck: {enabled: true}}]}}`, nil, nil},
		{"enabled health checks without a definition", `{controlPlane: {healthCheck: {enabled: true}}, workers: {machineDeployments: [{class: default-worker, name: a, healthCheck: {enabled: true}}]}}`, without, []string{
			`spec.topology.controlPlane.healthCheck.enabled: Forbidden: no MachineHealthCheck is defined: define it here or in the ClusterClass`,
			`spec.topology.workers.machineDeployments[0].healthCheck.enabled: Forbidden: no MachineHealthCheck is defined: define it here or in the ClusterClass`,
		}},
		{"health checks defined by the Cluster", `{controlPlane: {healthCheck: {enabled: true, ` + check + `}}, workers: {machineDeployments: [{class: default-worker, name: a, healthCheck: {` + check + `}}]}}`, without, nil},
		{"disabled health checks require no definition", `{controlPlane: {healthCheck: {enabled: false}}}`, without, nil},
		{"health checks are validated", `{controlPlane: {healthCheck: {remediation: {triggerIf: {unhealthyLessThanOrEqualTo: 1}}}}}`, nil,
			[]string{`spec.topology.controlPlane.healthCheck.checks.unhealthyNodeConditions: Required value: at least one condition or nodeStartupTimeoutSeconds is required`}},
		{"health checks of the control plane require Machines", `{controlPlane: {healthCheck: {` + check + `}}}`, func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.MachineInfrastructure = clusterv1.ControlPlaneClassMachineInfrastructureTemplate{}
		},
			[]string{`spec.topology.controlPlane.healthCheck: Forbidden: requires machineInfrastructure in the control plane of ClusterClass "class": without it there are no Machines to check`}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			class := parseYAML[clusterv1.ClusterClass](t, valid)
			if tt.change != nil {
				tt.change(&class.Spec)
			}
			topology := parseYAML[clusterv1.Topology](t, tt.topology)
			if diff := cmp.Diff(tt.want, texts(TopologyOf(&topology, &class, field.NewPath("spec", "topology")))); diff != "" {
				t.Errorf("%s: errors (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestRemovals(t *testing.T) {
	clusters := parseYAML[[]clusterv1.Cluster](t, `
- metadata: {name: b}
  spec: {topology: {classRef: {name: class}, version: v1, controlPlane: {healthCheck: {enabled: true}}, workers: {machineDeployments: [{class: default-worker, name: a, healthCheck: {enabled: true}}]}}}
- metadata: {name: a}
  spec: {topology: {classRef: {name: class}, version: v1, workers: {machineDeployments: [{class: default-worker, name: a}], machinePools: [{class: default-pool, name: a}]}}}
- metadata: {name: own}
  spec: {topology: {classRef: {name: class}, version: v1, controlPlane: {healthCheck: {enabled: true, remediation: {triggerIf: {unhealthyLessThanOrEqualTo: 1}}}}}}
`)
	tests := []struct {
		reason  string
		change  func(*clusterv1.ClusterClassSpec)
		removes bool
		want    []string
	}{
		{"nothing is removed", func(s *clusterv1.ClusterClassSpec) { s.Infrastructure.TemplateRef.Name = "b" }, false, nil},
		{"a class of MachineDeployments in use", func(s *clusterv1.ClusterClassSpec) { s.Workers.MachineDeployments = nil }, true,
			[]string{`spec.workers.machineDeployments: Forbidden: class "default-worker" cannot be removed: Clusters use it: a, b`}},
		{"a class of MachinePools in use", func(s *clusterv1.ClusterClassSpec) { s.Workers.MachinePools[0].Class = "other" }, true,
			[]string{`spec.workers.machinePools: Forbidden: class "default-pool" cannot be removed: Clusters use it: a`}},
		{"the machines of control planes in use", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.MachineInfrastructure = clusterv1.ControlPlaneClassMachineInfrastructureTemplate{}
		}, true,
			[]string{`spec.controlPlane.machineInfrastructure: Forbidden: cannot be removed: Clusters use it: a, b, own`}},
		{"health checks in use", func(s *clusterv1.ClusterClassSpec) {
			s.ControlPlane.HealthCheck = clusterv1.ControlPlaneClassHealthCheck{}
			s.Workers.MachineDeployments[0].HealthCheck = clusterv1.MachineDeploymentClassHealthCheck{}
		}, true, []string{
			`spec.controlPlane.healthCheck: Forbidden: cannot be removed: Clusters enable it without a definition of their own: b`,
			`spec.workers.machineDeployments[0].healthCheck: Forbidden: cannot be removed: Clusters enable it without a definition of their own: b`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			old, class := parseYAML[clusterv1.ClusterClass](t, valid), parseYAML[clusterv1.ClusterClass](t, valid)
			tt.change(&class.Spec)
			if got := Removes(&old, &class); got != tt.removes {
				t.Errorf("%s: Removes = %v, want %v", tt.reason, got, tt.removes)
			}
			if diff := cmp.Diff(tt.want, texts(Removals(&old, &class, clusters))); diff != "" {
				t.Errorf("%s: errors (-want +got):\n%s", tt.reason, diff)
			}
			if errs := Removals(&old, &class, nil); len(errs) > 0 {
				t.Errorf("%s: nothing is in use without Clusters, got %v", tt.reason, errs)
			}
		})
	}
}

func TestUnused(t *testing.T) {
	if err := Unused(nil); err != nil {
		t.Errorf("without Clusters: %v", err)
	}
	clusters := make([]clusterv1.Cluster, 7)
	for i := range clusters {
		clusters[i].Name = string(rune('g' - i))
		clusters[i].Spec.Topology.Version = "v1.30.0"
	}
	want := "the ClusterClass cannot be deleted: Clusters use it: a, b, c, d, e and 2 more; delete them or change them to another class first"
	if err := Unused(clusters); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestVersions(t *testing.T) {
	path := field.NewPath("version")
	for version, want := range map[string][]string{
		"v1.22.4":          nil,
		"v1.22.4+vendor.1": nil,
		"v1.30.0-alpha.1":  nil,
		"":                 {"version: Required value: the Kubernetes version is required"},
		"1.22.4":           {`version: Invalid value: "1.22.4": must be a semantic version with a leading "v", such as v1.30.2`},
		"v1.22":            {`version: Invalid value: "v1.22": must be a semantic version with a leading "v", such as v1.30.2`},
		"vlatest":          {`version: Invalid value: "vlatest": must be a semantic version with a leading "v", such as v1.30.2`},
		"v1.22.4 ":         {`version: Invalid value: "v1.22.4 ": must be a semantic version with a leading "v", such as v1.30.2`},
		"v01.22.4":         {`version: Invalid value: "v01.22.4": must be a semantic version with a leading "v", such as v1.30.2`},
	} {
		if diff := cmp.Diff(want, texts(Version(version, path))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", version, diff)
		}
	}

	tests := []struct {
		reason, old, current string
		chained              bool
		want                 []string
	}{
		{reason: "patch", old: "v1.21.2", current: "v1.21.3"},
		{reason: "build", old: "v1.21.2+vendor.1", current: "v1.21.2+vendor.2"},
		{reason: "minor", old: "v1.21.2", current: "v1.22.0"},
		{reason: "minor, from the last patch release to the first pre-release", old: "v1.21.14", current: "v1.22.0-alpha.1"},
		{reason: "downgrade", old: "v1.21.2", current: "v1.21.1", want: []string{`version: Invalid value: "v1.21.1": must not be lower than the previous version v1.21.2`}},
		{reason: "downgrade of build metadata", old: "v1.21.2+vendor.2", current: "v1.21.2+vendor.1", want: []string{`version: Invalid value: "v1.21.2+vendor.1": must not be lower than the previous version v1.21.2+vendor.2`}},
		{reason: "two minors", old: "v1.21.2", current: "v1.23.0", want: []string{`version: Invalid value: "v1.23.0": a Cluster at v1.21.2 can be upgraded by one minor version at a time: upgrade to v1.22 first`}},
		{reason: "two minors, and the class has the versions in between", old: "v1.21.2", current: "v1.23.0", chained: true},
		{reason: "two minors, pre-release", old: "v1.21.2", current: "v1.23.0-alpha.1", want: []string{`version: Invalid value: "v1.23.0-alpha.1": a Cluster at v1.21.2 can be upgraded by one minor version at a time: upgrade to v1.22 first`}},
		{reason: "major", old: "v1.21.2", current: "v2.0.0", chained: true, want: []string{`version: Invalid value: "v2.0.0": a Cluster at v1.21.2 can be upgraded by one minor version at a time: upgrade to v1.22 first`}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, texts(Upgrade(tt.old, tt.current, tt.chained, path))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}
